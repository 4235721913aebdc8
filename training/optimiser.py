"""Adam (Kingma and Ba 2015) with sparse updates: only the rows of a batch are changed."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
FIRST, SECOND, TINY = 0.9, 0.999, 1e-8


class RowAdam:
    """Adam for one array of parameters. Bias correction counts the steps of each row."""

    def __init__(self, values: Floats, rate: float) -> None:
        self._values = values
        self._rate = rate
        self._mean = np.zeros_like(values)
        self._square = np.zeros_like(values)
        self._steps = np.zeros(len(values), np.int32)

    def step(self, rows: NDArray[np.int64], gradient: Floats, rate_factor: float) -> None:
        """Update rows by their gradient. The learning rate is `rate` times `rate_factor`."""
        self._steps[rows] += 1
        count = self._steps[rows].astype(np.float32)
        shape = (-1,) + (1,) * (gradient.ndim - 1)
        mean = self._mean[rows]
        mean += np.float32(1 - FIRST) * (gradient - mean)
        self._mean[rows] = mean
        square = self._square[rows]
        square += np.float32(1 - SECOND) * (gradient * gradient - square)
        self._square[rows] = square
        rate = np.float32(self._rate * rate_factor) / (1 - np.float32(FIRST) ** count)
        deviation = np.sqrt(square / (1 - np.float32(SECOND) ** count).reshape(shape))
        self._values[rows] -= rate.reshape(shape) * mean / (deviation + np.float32(TINY))

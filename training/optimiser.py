"""Adam that touches only the rows a batch has touched."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
FIRST, SECOND, TINY = 0.9, 0.999, 1e-8


class RowAdam:
    """For one array; `step` gives the gradient of some of its rows."""

    def __init__(self, values: Floats, rate: float) -> None:
        self._values = values
        self._rate = rate
        self._mean = np.zeros_like(values)
        self._square = np.zeros_like(values)
        self._steps = np.zeros(len(values), np.int32)

    def step(self, rows: NDArray[np.int64], gradient: Floats, pace: float) -> None:
        """Move the rows against their gradient; `pace` scales the rate."""
        self._steps[rows] += 1
        count = self._steps[rows].astype(np.float32)
        shape = (-1,) + (1,) * (gradient.ndim - 1)
        mean = self._mean[rows]
        mean += np.float32(1 - FIRST) * (gradient - mean)
        self._mean[rows] = mean
        square = self._square[rows]
        square += np.float32(1 - SECOND) * (gradient * gradient - square)
        self._square[rows] = square
        rate = np.float32(self._rate * pace) / (1 - np.float32(FIRST) ** count)
        spread = np.sqrt(square / (1 - np.float32(SECOND) ** count).reshape(shape))
        self._values[rows] -= rate.reshape(shape) * mean / (spread + np.float32(TINY))

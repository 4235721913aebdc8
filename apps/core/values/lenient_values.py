"""Values of the configuration that do not stop the start if they are wrong: they mean the default
(docs/contract.md §4.4). `config.replaced_values` reports them."""

import math
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class NumberOr:
    """Parses a number. Other texts and numbers out of range mean the default."""

    default: float
    accept: Callable[[float], bool]
    whole: bool = False

    def __call__(self, value: str) -> float:
        number = self.default if self.refuses(value) else float(value)
        return math.floor(number) if self.whole else number

    def refuses(self, value: str) -> bool:
        try:
            number = float(value)
        except ValueError:
            return True
        return not math.isfinite(number) or not self.accept(number)


@dataclass(frozen=True)
class TrueOrNot:
    """Parses `true`, in any case. Every other text is False, and right only if it is `false`."""

    def __call__(self, value: str) -> bool:
        return value.lower() == "true"

    def refuses(self, value: str) -> bool:
        return value.lower() not in ("true", "false")

"""The instructions that NumPy uses in a process that codeinfo starts."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import numpy as np

CPU_INFO = Path("/proc/cpuinfo")
VARIABLE = "NPY_DISABLE_CPU_FEATURES"
# NumPy cannot be imported if two of them are set.
_VARIABLES = {VARIABLE, "NPY_ENABLE_CPU_FEATURES"}
# Zen 4 of AMD: of this family, only its processors have AVX-512.
_MAKER, _FAMILY = "AuthenticAMD", "25"


def sorting_environment() -> dict[str, str]:
    """Return the variables with which NumPy sorts fast in a new process. What is set stays.

    On Zen 4, sorting with AVX-512 takes about five times as long as with AVX2: its `vpcompress` to
    memory is microcoded.
    """
    text = ""
    with suppress(OSError):
        text = CPU_INFO.read_text()
    extensions = np.show_config(mode="dicts")["SIMD Extensions"]
    slow = slow_features(text, extensions.get("found", ()))
    is_free = _VARIABLES.isdisjoint(os.environ)
    return {VARIABLE: " ".join(slow)} if slow and is_free else {}


def slow_features(cpu: str, features: Iterable[str]) -> list[str]:
    """Return those features of NumPy that sort slowly.

    cpu: as /proc/cpuinfo describes it
    """
    pairs = (line.partition(":") for line in cpu.partition("\n\n")[0].splitlines())
    values = {name.strip(): value.strip() for name, _, value in pairs}
    if (values.get("vendor_id"), values.get("cpu family")) != (_MAKER, _FAMILY):
        return []
    return [name for name in features if name == "X86_V4" or name.startswith("AVX512")]

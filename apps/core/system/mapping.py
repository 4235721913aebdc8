"""Files that are mapped into memory, also if one gets shorter meanwhile or the disk cannot read it.

The system then sends SIGBUS to who reads it, which ends the process. In a process that has called
`survive`, the rest of the mapping is replaced by zeros, the mapping counts as lost, and what was
read is read again (`read_again`), from a file that is opened anew.

A file of the index never changes. One that has another time of its last write than when it was
mapped was harmed, and is compared with its checksums before it is used again.
"""

import ctypes
import functools
import mmap
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar
from weakref import WeakValueDictionary

import numpy as np

P = ParamSpec("P")
Result = TypeVar("Result")

# sigaction(2), siginfo_t and mmap(2) of Linux on machines of 64 bits, with glibc or musl.
_SIGBUS, _SA_SIGINFO, _ADDRESS_AT = 7, 4, 16
_PROT_READ, _ANONYMOUS_IN_PLACE = 1, 0x32
_FAILED = ctypes.c_void_p(-1).value


class Mapping(mmap.mmap):
    """A file that is mapped to be read."""

    address = 0
    struck = False  # reading it has failed
    path = Path()
    written_at = 0  # ns since the epoch

    @classmethod
    def of(cls, descriptor: int, size: int, path: Path) -> "Mapping":
        """Raises OSError, and ValueError if the file is empty or shorter. path: of the file"""
        mapping = cls(descriptor, size, access=mmap.ACCESS_READ)
        mapping.path, mapping.written_at = path, os.fstat(descriptor).st_mtime_ns
        mapping.address = int(np.frombuffer(mapping, np.uint8).ctypes.data)
        _mappings[mapping.address] = mapping
        return mapping

    @property
    def is_lost(self) -> bool:
        """Whether somebody has written to the file since, or it could not be read. 2 µs."""
        if self.struck:
            return True
        try:
            status = os.stat(self.path)
        except OSError:  # deleted: who has mapped it reads it as it was
            return self.size() != len(self)
        return (status.st_size, status.st_mtime_ns) != (len(self), self.written_at)

    def strike(self, address: int) -> bool:
        """Put zeros in place of what begins at the page of an address. Return whether that is
        done."""
        # In this order: who reads the zeros finds the loss counted, and who begins later finds the
        # mapping lost.
        self.struck = True
        _losses.append(self.address)
        start = address - address % mmap.PAGESIZE
        rest = self.address + len(self) - start
        made = _libc().mmap(start, rest, _PROT_READ, _ANONYMOUS_IN_PLACE, -1, 0)
        return bool(made != _FAILED)


_mappings: "WeakValueDictionary[int, Mapping]" = WeakValueDictionary()
_losses: list[int] = []  # few: each ends the use of a file


class _Losses:
    """The losses while a block runs. An error of it is ignored if there are any: zeros may be its
    cause."""

    def __enter__(self) -> "_Losses":
        self._before = len(_losses)
        return self

    def __exit__(self, kind: type[BaseException] | None, *raised: object) -> bool:
        self.any = len(_losses) > self._before
        return self.any and (kind is None or issubclass(kind, Exception))


def read_again(read: Callable[P, Result]) -> Callable[P, Result]:
    """Decorate a function that reads mapped files: it is called again if one was lost meanwhile."""

    @functools.wraps(read)
    def reading(*args: P.args, **options: P.kwargs) -> Result:
        while True:
            with _Losses() as losses:
                result = read(*args, **options)
            if not losses.any:
                return result

    return reading


def survive() -> None:
    """Survive the loss of mapped files from now on. Does nothing on systems other than Linux.

    Called after `faulthandler` was enabled, which gets the signals of other causes.
    """
    if sys.platform != "linux" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return
    action = _Action(_HANDLE, flags=_SA_SIGINFO)
    if _libc().sigaction(_SIGBUS, ctypes.byref(action), ctypes.byref(_before)):
        raise OSError("SIGBUS cannot be handled")


class _Action(ctypes.Structure):
    """struct sigaction"""

    _fields_ = (
        ("handler", ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)),
        ("mask", ctypes.c_ubyte * 128),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )


_before = _Action()


def _handle(_number: int, info: int, _context: int) -> None:
    """Handle SIGBUS, in the thread that has read.

    It may run Python, unlike handlers of other signals: a mapping is read by a loop of NumPy or
    zlib, or by a copy into new memory, never in the middle of a change of the interpreter's state.
    """
    is_handled = False
    try:
        address = ctypes.c_void_p.from_address(info + _ADDRESS_AT).value or 0
        for reference in _mappings.valuerefs():
            mapping = reference()
            if mapping is not None and 0 <= address - mapping.address < len(mapping):
                is_handled = mapping.strike(address)
    finally:
        if not is_handled:
            # Comes again when this returns, to the handler that was there before.
            _libc().sigaction(_SIGBUS, ctypes.byref(_before), None)
            signal.raise_signal(_SIGBUS)


_HANDLE = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(_handle)


@functools.cache
def _libc() -> Any:
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (
        *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int),
        ctypes.c_long,
    )
    return libc

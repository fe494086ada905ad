"""Chooses the compiled scanner if it is installed, else the scanner in Python.

The library (``walk.c``, compiled by ``hatch_build.py``) does not use Python's C API, so one wheel
per platform serves all Python versions. It runs without the GIL, and returns the same results as
:mod:`tfrecreg.core.records.frame_scan`. The environment variable ``TFRECREG_SCANNER`` can be
``auto``, ``python``, or ``native``, which fails if the compiled scanner is missing.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
from array import array
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Literal, NamedTuple

import numpy as np

from tfrecreg.core.records.frame_scan import (
    FrameScan,
    FrameScanner,
    PythonFinder,
    PythonFrameScanner,
    Stop,
    header_candidates,
)
from tfrecreg.core.values.errors import FailureError, UsageError

# A name that ends in `.so` would make it a Python module.
LIBRARY = Path(__file__).with_name("libwalk.so.1")
SOURCE = Path(__file__).with_name("walk.c")
"""The scanner's source. A checkout has it, but wheels do not."""
ENGINES = ("tables", "SSE 4.2", "ARMv8")
"""The instructions that compute checksums, in order of ``enum engine``."""
_BEST = -1
_FULL = 0
_STOPS = (None, Stop.SHORT, Stop.SHORT, Stop.LENGTH, Stop.HUGE, Stop.DATA)
"""Reasons why a walk ended, in the order of the constants in ``enum stop``."""
_WITHOUT_LENGTH = (1, 3)

_CAPACITY = 1 << 16
"""Maximum number of records per call. Batches of ordinary size have fewer records."""


_PLACES = 1 << 10
"""Maximum number of places per call of ``tfrecreg_members``."""


class _Report(ctypes.Structure):
    """The ``struct report`` of ``walk.c``."""

    _fields_ = (
        ("records", ctypes.c_uint64),
        ("payload_bytes", ctypes.c_uint64),
        ("end", ctypes.c_uint64),
        ("length", ctypes.c_uint64),
        ("stop", ctypes.c_uint32),
        ("crc", ctypes.c_uint32),
        ("stored", ctypes.c_uint32),
        ("unused", ctypes.c_uint32),
    )


class _Span(ctypes.Structure):
    """The ``struct span`` of ``walk.c``."""

    _fields_ = (("start", ctypes.c_int64), ("end", ctypes.c_int64))


_I32, _I64, _U64 = ctypes.c_int32, ctypes.c_int64, ctypes.c_uint64
_TEXT, _AT = ctypes.c_char_p, ctypes.c_void_p
_CANONICAL = (_TEXT, _AT, _AT, _U64, _AT)
_FUNCTIONS = {
    "prepare": (_I32,),
    "source": (_U64,),
    "walk": (None, _I32, _TEXT, _U64, _U64, _I64, _U64, *[_AT] * 4),
    "record": (_I32, _I32, _U64, _U64, _TEXT),
    "headers": (_U64, _TEXT, _U64),
    "members": (_U64, _TEXT, *[_U64] * 4, _AT),
    "canonical": (None, *_CANONICAL),
    "digests": (None, _I32, *_CANONICAL, _AT),
    "columns": (_U64, _TEXT, _AT, _AT, _U64, _TEXT, _AT, _U64, _AT, _AT),
    "finder": (_AT, _I32, *[_I64] * 4, _I32),
    "finder_feed": (_I32, _AT, _TEXT, _U64, _I64, _I32),
    "finder_spans": (_U64, *[_AT] * 5),
    "finder_free": (None, _AT),
}
"""The functions of the library: the type of the result, and the types of the arguments."""


@lru_cache(maxsize=1)
def load_scanner() -> SimpleNamespace:
    """Load the library, once per process.

    The result has the functions, named without the prefix ``tfrecreg_``. Its `engine` is one of
    :data:`ENGINES`, and names the instructions that compute checksums.
    """
    loaded = SimpleNamespace()
    try:
        library = ctypes.CDLL(str(LIBRARY))
        for name, (result, *arguments) in _FUNCTIONS.items():
            function = getattr(library, f"tfrecreg_{name}")
            function.restype, function.argtypes = result, arguments
            setattr(loaded, name, function)
    except (OSError, AttributeError) as error:
        if not LIBRARY.exists():
            raise _missing("it was not compiled") from error
        raise _missing(f"it cannot be loaded: {error}") from error
    if SOURCE.exists():
        digest = hashlib.sha256(SOURCE.read_bytes()).digest()
        if loaded.source() != int.from_bytes(digest[:8], "big"):
            raise _missing("it was compiled from another `walk.c`")
    loaded.engine = ENGINES[loaded.prepare()]
    return loaded


def native_members(memory: bytes, stop: int) -> Iterator[int]:
    """The compiled version of :func:`tfrecreg.core.records.gzip_access.python_members`."""
    find = load_scanner().members
    room = array("q", bytes(8 * _PLACES))
    address, _ = room.buffer_info()
    at, count = 0, _PLACES
    while count == _PLACES:
        count = find(memory, len(memory), at, stop, _PLACES, address)
        yield from room[:count]
        at = room[count - 1] + 1


def _missing(why: str) -> FailureError:
    return FailureError(
        f"there is no compiled scanner: {why}", hint="install tfrecreg where there is a C compiler"
    )


class NativeFrameScanner:
    """The scanner that calls the library."""

    def __init__(self, engine: int = _BEST) -> None:
        self._walk = load_scanner().walk
        self._engine = engine
        self._report = _Report()
        # A page of this array takes no memory until records are written to it.
        room = np.empty((3, _CAPACITY), np.int64)
        self._room = tuple(column.data.cast("B") for column in room)
        self._addresses = (*(column.ctypes.data for column in room), ctypes.addressof(self._report))

    def __call__(self, memory: bytes, base: int) -> FrameScan:
        offsets: array[int] = array("q")
        starts: array[int] = array("q")
        lengths: array[int] = array("q")
        columns = (offsets, starts, lengths)
        report = self._report
        payload_bytes = at = 0
        stop = _FULL
        while stop == _FULL:
            self._walk(self._engine, memory, len(memory), at, base, _CAPACITY, *self._addresses)
            filled = 8 * report.records
            for column, room in zip(columns, self._room, strict=True):
                column.frombytes(room[:filled])
            payload_bytes += report.payload_bytes
            at, stop = report.end, report.stop
        why = _STOPS[stop]
        assert why is not None
        length = None if stop in _WITHOUT_LENGTH else report.length
        crc, stored = (report.crc, report.stored) if why is Stop.DATA else (0, 0)
        return FrameScan(offsets, starts, lengths, payload_bytes, at, why, length, crc, stored)


class NativeFinder:
    """The compiled :class:`tfrecreg.core.records.frame_scan.PythonFinder`."""

    def __init__(
        self,
        at: int,
        *,
        before: int,
        stop: int,
        gap: bool,
        first: bool = False,
        engine: int = _BEST,
    ) -> None:
        self._handle: int | None = None
        self._native = load_scanner()
        self._handle = self._native.finder(engine, at, at + (not first), before, stop, gap)
        if self._handle is None:
            raise MemoryError
        self.found = self.payload = -1
        self._spans = ctypes.POINTER(_Span)()
        self._count = 0
        self._waiting = 0

    def __del__(self) -> None:
        if self._handle is not None:
            self._native.finder_free(self._handle)

    def feed(self, block: bytes, base: int, *, last: bool) -> bool:
        passed: int = self._native.finder_feed(self._handle, block, len(block), base, last)
        if passed < 0:
            raise MemoryError
        waiting, found, payload = ctypes.c_uint64(), ctypes.c_int64(), ctypes.c_int64()
        results = (self._spans, waiting, found, payload)
        self._count = self._native.finder_spans(self._handle, *map(ctypes.addressof, results))
        self._waiting = waiting.value
        self.found, self.payload = found.value, payload.value
        return passed > 0

    def first(self) -> tuple[int, int] | None:
        return (self._spans[0].start, self._spans[0].end) if self._count else None

    def spans(self) -> list[tuple[int, int]]:
        return [(span.start, span.end) for span in self._spans[: self._count]]

    def waiting(self) -> bool:
        return self._waiting > 0


Finder = PythonFinder | NativeFinder

VARIABLE = "TFRECREG_SCANNER"

_Kind = Literal["native", "python"]


class Scanner(NamedTuple):
    """The scanner in use. `detail` names the CPU instructions, or says why the Python scanner is
    used.
    """

    kind: _Kind
    detail: str


def scanner() -> Scanner:
    """The scanner that reads shards in this process."""
    wanted = os.environ.get(VARIABLE) or "auto"
    if wanted not in ("auto", "native", "python"):
        raise UsageError(f"`{VARIABLE}` should be `auto`, `native` or `python`, found `{wanted}`")
    if wanted == "python":
        return Scanner("python", f"{VARIABLE}=python")
    try:
        return Scanner("native", load_scanner().engine)
    except FailureError as error:
        if wanted == "native":
            raise
        return Scanner("python", error.message)


def scanner_kind() -> _Kind:
    """The kind of the scanner in this process. ``native`` is the compiled scanner."""
    return scanner().kind


def make_frame_scanner() -> FrameScanner:
    """A new frame scanner, for one stream."""
    return NativeFrameScanner() if scanner_kind() == "native" else PythonFrameScanner()


def record_reader() -> Callable[[int, int, int], bytes | None] | None:
    """A function that gets a file descriptor, an offset and a length, and reads and verifies the
    record there; None without the compiled scanner.

    The function returns None if the record is missing or not sound.
    """
    if scanner_kind() != "native":
        return None
    read = load_scanner().record
    # This is the documented way to make a bytes object whose content is filled in later.
    make = ctypes.pythonapi.PyBytes_FromStringAndSize
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_ssize_t]

    def payload(file: int, at: int, length: int) -> bytes | None:
        made: bytes = make(None, length)
        return made if read(file, at, length, made) else None

    return payload


def count_headers(memory: bytes) -> int:
    """Number of offsets in `memory` at which a header with a correct checksum begins."""
    if scanner_kind() == "python":
        return len(header_candidates(memory))
    found: int = load_scanner().headers(memory, len(memory))
    return found


def make_finder(at: int, *, before: int, stop: int, gap: bool, first: bool = False) -> Finder:
    """A new finder, for one search; see :class:`tfrecreg.core.records.frame_scan.PythonFinder`."""
    kind: Callable[..., Finder]
    kind = NativeFinder if scanner_kind() == "native" else PythonFinder
    return kind(at, before=before, stop=stop, gap=gap, first=first)

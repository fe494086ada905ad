"""Which scanner reads: the compiled one where it was installed, else the one in Python.

The environment variable ``TFRECREG_SCANNER`` decides otherwise: ``python``, or ``native`` to fail
where the compiled one is missing; ``auto`` is the default. Both find the same.
"""

from __future__ import annotations

import os
from typing import Literal, NamedTuple

from tfrecreg.errors import FailureError, UsageError
from tfrecreg.records.candidates import header_candidates
from tfrecreg.records.finder import Finder, PythonFinder
from tfrecreg.records.native import NativeFinder, NativeWalker, load
from tfrecreg.records.walk import PythonWalker, Walker
from tfrecreg.text import safe

__all__ = [
    "VARIABLE",
    "Scanner",
    "count_headers",
    "make_finder",
    "make_walker",
    "scanner",
    "scanner_kind",
]

VARIABLE = "TFRECREG_SCANNER"

Kind = Literal["native", "python"]


class Scanner(NamedTuple):
    """The scanner that is used, and why."""

    kind: Kind
    detail: str
    """Of the compiled one, how it computes checksums; else why it is not used."""


def scanner() -> Scanner:
    """Which scanner reads shards in this process, and why.

    Raises:
        UsageError: `TFRECREG_SCANNER` is none of ``auto``, ``native`` and ``python``.
        FailureError: it is ``native``, and the compiled scanner is not there.
    """
    wanted = os.environ.get(VARIABLE) or "auto"
    if wanted not in ("auto", "native", "python"):
        raise UsageError(
            f"`{VARIABLE}` should be `auto`, `native` or `python`, found `{safe(wanted)}`",
            hint=f"unset {VARIABLE}",
        )
    if wanted == "python":
        return Scanner("python", f"{VARIABLE}=python")
    try:
        return Scanner("native", load().engine)
    except FailureError as error:
        if wanted == "native":
            raise
        return Scanner("python", error.message)


def scanner_kind() -> Kind:
    """Which scanner reads shards in this process: ``native`` is the compiled one.

    Raises:
        UsageError, FailureError: as :func:`scanner`.
    """
    return scanner().kind


def make_walker() -> Walker:
    """The walker for one stream.

    Raises:
        UsageError, FailureError: as :func:`scanner`.
    """
    return NativeWalker() if scanner_kind() == "native" else PythonWalker()


def count_headers(memory: bytes) -> int:
    """How many places of `memory` begin 12 bytes that are a header whose checksum holds.

    Raises:
        UsageError, FailureError: as :func:`scanner`.
    """
    if scanner_kind() == "native":
        return load().headers(memory, len(memory))
    return len(header_candidates(memory))


def make_finder(at: int, *, before: int, stop: int, gap: bool, first: bool = False) -> Finder:
    """The finder for one search; see :class:`tfrecreg.records.finder.PythonFinder`.

    Raises:
        UsageError, FailureError: as :func:`scanner`.
    """
    kind = NativeFinder if scanner_kind() == "native" else PythonFinder
    return kind(at, before=before, stop=stop, gap=gap, first=first)

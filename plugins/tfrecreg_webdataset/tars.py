"""Lists the members of a tar file with `tarfile`. Only their headers are read, nothing is unpacked.

At a damaged header, or where the file is cut before a header, `tarfile` reports the end of the
archive. So this module examines the bytes where `tarfile` stops.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from typing import Any, NamedTuple

from tfrecreg.api import Reader, ReadingFile, safe

_BLOCK = tarfile.BLOCKSIZE
_WINDOW = 1 << 12
"""Bytes per read. A single read often has the headers of several small members."""
_MAX_EXTENDED = 1 << 20
_MAX_NAME = 1 << 12
_AFTER = 1 << 16
"""Number of bytes that are examined after the end of an archive."""
_ERRORS = (tarfile.TarError, ArithmeticError, LookupError, MemoryError, RecursionError, ValueError)
_REFUSED = {tarfile.LNKTYPE: "a hard link", tarfile.SYMTYPE: "a symbolic link"}


class TarMember(NamedTuple):
    name: str
    """The name without a leading `./`."""
    is_folder: bool
    offset: int
    """Offset of a file's data."""
    size: int
    refused: str
    """Why it is refused; empty for a file with a safe name."""


class TarDamage(Exception):
    """The archive is damaged, so its other members cannot be read. The text is the reason."""

    def __init__(self, detail: str, name: str = "", *, is_other: bool = False) -> None:
        super().__init__(detail)
        self.name = name
        """The name of the cut member; empty if it has no header."""
        self.is_other = is_other
        """True if the file does not begin with a header. Such a file may be of any kind."""


class _Headers(io.BufferedReader):
    """Limits how many bytes `tarfile` reads at once, whatever a header says."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(size or 0, _MAX_EXTENDED))


class TarWalk:
    """The members of one tar file, in order."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.has_end = False
        """Whether the blocks that end an archive were found."""
        self.end_note = ""
        """What is unusual about the end of the archive. It is known only after the last member is
        read."""

    def members(self) -> Iterator[TarMember]:
        end = self._reader.size
        try:
            file = _Headers(ReadingFile(self._reader), _WINDOW)
            archive: Any = tarfile.TarFile(fileobj=file, encoding="utf-8")
            while (found := archive.next()) is not None:
                archive.members.clear()  # it would keep every header
                member = _member(found)
                data_end = found.offset_data + found.size
                if found.size < 0 or (not member.refused and data_end > end):
                    why = f"it ends at byte {end}, but a member should end at {data_end}"
                    raise TarDamage(why, member.name)
                yield member
                if archive.offset > end:
                    raise TarDamage(f"it is cut at byte {end}, inside a block", member.name)
        except _ERRORS as error:
            is_other = bool(end and _problem(self._reader.read_at(0, _BLOCK)))
            raise TarDamage(safe(str(error), limit=200), is_other=is_other) from None
        self._examine_end(archive.offset)

    def _examine_end(self, at: int) -> None:
        """Find out why `tarfile` stopped before the block at `at`."""
        block = self._reader.read_at(at, _BLOCK)
        self.has_end = block == bytes(_BLOCK)
        if not block:
            self.end_note = "it ends without the blocks that end an archive"
        elif not self.has_end:
            raise TarDamage(f"the header at byte {at} is damaged: {_problem(block)}")
        elif self._reader.read_at(at + _BLOCK, _AFTER).strip(b"\0"):
            self.end_note = f"it ends at byte {at}, but data follow"


def _problem(block: bytes) -> str:
    """Why a block is not a header, in the words of `tarfile`; empty if the block is a header."""
    try:
        tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except tarfile.HeaderError as error:
        return str(error)
    return ""


def _member(found: tarfile.TarInfo) -> TarMember:
    name, refused = found.name.removeprefix("./"), ""
    if found.issparse():
        refused = "a sparse file"
    elif not found.isreg():
        other = f"not a file, but a member of the type {found.type!a}"
        refused = _REFUSED.get(found.type, other)
    elif not name or "\0" in name or len(name) > _MAX_NAME:
        refused = "a member without a usable name"
    elif name.startswith("/") or ".." in name.split("/"):
        refused = "a name that leads out of the archive"
    else:
        try:
            name.encode()
        except UnicodeEncodeError:
            refused = "a name that is not UTF-8"
    return TarMember(name, found.isdir(), found.offset_data, found.size, refused)

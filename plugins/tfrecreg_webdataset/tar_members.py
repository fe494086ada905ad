"""The members of a tar file, by their headers alone: no data are read, and nothing is unpacked.

`tarfile` parses a header and verifies its checksum. The walk from header to header is here, since a
`TarFile` keeps every header in memory and reads extended headers of any size.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from typing import Literal, NamedTuple

from tfrecreg.api import Reader

BLOCK = tarfile.BLOCKSIZE
_EMPTY = bytes(BLOCK)
_WINDOW = 1 << 12
"""Bytes of a read: the headers of small members come in one."""
_MAX_PAX = 1 << 20
"""Bytes of an extended header."""
_MAX_NAME = 1 << 12
_MAX_SIZE = 1 << 62
_AFTER = 1 << 16
"""Bytes behind the end of an archive that are looked at."""

_FILES = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE)
_REFUSED = {
    tarfile.LNKTYPE: "a hard link",
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.GNUTYPE_SPARSE: "a sparse file",
}
_WITHOUT_DATA = (
    *(tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.DIRTYPE),
    *(tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE),
)
_VOLUME_LABEL = b"V"


class TarMember(NamedTuple):
    """A member of a tar file."""

    name: str
    """Without `./` before it."""
    kind: Literal["file", "dir", "refused"]
    offset: int = 0
    """Where the data of a file begin."""
    size: int = 0
    detail: str = ""
    """Why it is refused."""


class TarDamage(Exception):
    """The archive cannot be read beyond some member."""

    def __init__(self, detail: str, name: str = "", is_first: bool = False) -> None:
        super().__init__(detail)
        self.detail = detail
        self.name = name
        """The member that is cut; empty if it has no header."""
        self.is_first = is_first
        """Whether not one header is sound, so that the file may be of any kind."""


class TarWalk:
    """The members of one tar file, in order."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._start = 0
        self._window = b""
        self.end_note = ""
        """After the last member: what is unusual about the end of the archive."""
        self.has_end = False
        """Whether the blocks that end an archive were there."""

    def members(self) -> Iterator[TarMember]:
        """All members."""
        extended: dict[str, str] = {}
        at = 0
        is_first = True
        last = ""
        while True:
            block = self._read(at, BLOCK)
            if not block and not is_first:
                if extended or self._reader.size % BLOCK:
                    raise TarDamage(
                        f"it is cut at byte {self._reader.size}, "
                        + ("before a member" if extended else "inside a block"),
                        last,
                    )
                self.end_note = "it ends without the blocks that end an archive"
                return
            if block == _EMPTY:
                self.has_end = True
                if self._reader.read_at(at + BLOCK, _AFTER).strip(b"\0"):
                    self.end_note = f"there are data behind its end at byte {at}"
                return
            header = self._header(block, at, is_first)
            is_first = False
            data = at + BLOCK
            if header.type in (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE):
                extended.update(self._pax(data, header.size))
            elif header.type == tarfile.XGLTYPE:
                if {"path", "size"} & self._pax(data, header.size).keys():
                    raise TarDamage(f"a global header with a name or a size at byte {at}")
            elif header.type == tarfile.GNUTYPE_LONGNAME:
                name = self._extended(data, header.size, _MAX_NAME + 1)
                extended["path"] = _text(name.partition(b"\0")[0])
            elif header.type == tarfile.GNUTYPE_LONGLINK:
                self._extended(data, header.size, 1 << 16)
            else:
                if header.type == tarfile.GNUTYPE_SPARSE:
                    data = self._after_sparse(data, block)
                member = _member(header, extended, data)
                extended = {}
                end = data + member.size
                if end > self._reader.size:
                    raise TarDamage(
                        f"it ends at byte {self._reader.size}, and a member should end at {end}",
                        member.name,
                    )
                last = member.name
                if header.type != _VOLUME_LABEL:
                    yield member
                at = data + _padded(member.size)
                continue
            at = data + _padded(header.size)

    def _header(self, block: bytes, at: int, is_first: bool) -> tarfile.TarInfo:
        try:
            header = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except tarfile.HeaderError as error:
            if len(block) < BLOCK:
                what = f"it ends at byte {self._reader.size}, inside a header"
            else:
                what = f"the header at byte {at} is damaged: {error}"
            raise TarDamage(what, is_first=is_first) from None
        if not 0 <= header.size < _MAX_SIZE:
            raise TarDamage(f"the header at byte {at} has the size {header.size}")
        return header

    def _pax(self, at: int, size: int) -> dict[str, str]:
        """The records of an extended header: ``LENGTH KEY=VALUE`` and a line feed."""
        data = self._extended(at, size, _MAX_PAX)
        found: dict[str, str] = {}
        start = 0
        while start < len(data) and data[start]:
            space = data.find(b" ", start, start + 20)
            digits = data[start:space] if space > 0 else b""
            end = start + int(digits) if digits.isdigit() else 0
            key, equals, value = data[space + 1 : end - 1].partition(b"=")
            if not (space < end <= len(data) and equals and data[end - 1 : end] == b"\n"):
                raise TarDamage(f"the extended header at byte {at} is malformed")
            found[_text(key)] = _text(value)
            start = end
        if "size" in found and not (found["size"].isdecimal() and len(found["size"]) < 19):
            raise TarDamage(f"the extended header at byte {at} has no number as its size")
        return found

    def _extended(self, at: int, size: int, limit: int) -> bytes:
        if size > limit:
            raise TarDamage(f"an extended header of {size} bytes at byte {at}, at most {limit}")
        data = self._reader.read_at(at, size)
        if len(data) < size:
            raise TarDamage(f"it ends at byte {self._reader.size}, inside an extended header")
        return data

    def _after_sparse(self, at: int, block: bytes) -> int:
        """Where the data begin, behind the further headers of a sparse file."""
        more, flag = block, 482
        while len(more) == BLOCK and more[flag]:
            more, flag, at = self._read(at, BLOCK), 504, at + BLOCK
        return at

    def _read(self, at: int, length: int) -> bytes:
        first = at - self._start
        if not 0 <= first <= len(self._window) - length:
            self._start, first = at, 0
            self._window = self._reader.read_at(at, _WINDOW)
        return self._window[first : first + length]


def _member(header: tarfile.TarInfo, extended: dict[str, str], data: int) -> TarMember:
    name = extended.get("path", header.name).removeprefix("./")
    size = int(extended["size"]) if "size" in extended else header.size
    kind = header.type
    if kind in _WITHOUT_DATA:
        size = 0
    if kind == tarfile.DIRTYPE:
        return TarMember(name, "dir")
    refused = _REFUSED.get(kind, "")
    if any(each.startswith("GNU.sparse") for each in extended):
        refused = _REFUSED[tarfile.GNUTYPE_SPARSE]
    elif not refused and kind not in _FILES and kind != _VOLUME_LABEL:
        refused = f"no file, but a member of the type {kind!a}"
    refused = refused or _why_unsafe(name)
    return TarMember(name, "refused" if refused else "file", data, size, refused)


def _why_unsafe(name: str) -> str:
    """Why a name is not the path of a file below the archive; empty if it is."""
    if not name or "\0" in name or len(name) > _MAX_NAME:
        return "a member without a usable name"
    if name.startswith("/") or ".." in name.split("/"):
        return "a name that leads out of the archive"
    try:
        name.encode()
    except UnicodeEncodeError:
        return "a name that is not UTF-8"
    return ""


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _padded(size: int) -> int:
    return -(-size // BLOCK) * BLOCK

"""Lists the members of a tar file. Only their headers are read, and nothing is unpacked.

`tarfile` parses a header and verifies its checksum. This module goes from header to header itself,
because a `TarFile` keeps every header, reads big extended headers, and mistakes damage for the end.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from typing import Literal, NamedTuple

from tfrecreg.api import Reader

_BLOCK = tarfile.BLOCKSIZE
_EMPTY = bytes(_BLOCK)
_WINDOW = 1 << 12
"""Bytes per read. A single read often has the headers of several small members."""
_MAX_EXTENDED = 1 << 20
_MAX_NAME = 1 << 12
_AFTER = 1 << 16
"""Number of bytes that are examined after the end of an archive."""
_PAX = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE)
_GNU = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
_REFUSED = {
    tarfile.LNKTYPE: "a hard link",
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.GNUTYPE_SPARSE: "a sparse file",
}


class TarMember(NamedTuple):
    """A member of a tar file."""

    name: str
    """The name without a leading `./`."""
    kind: Literal["file", "dir", "refused"]
    offset: int = 0
    """Offset of a file's data."""
    size: int = 0
    detail: str = ""
    """Why it is refused."""


class TarDamage(Exception):
    """The archive is damaged, so its other members cannot be read. The text is the reason."""

    def __init__(self, detail: str, name: str = "", *, is_other: bool = False) -> None:
        super().__init__(detail)
        self.name = name
        """The name of the cut member; empty if it has no header."""
        self.is_other = is_other
        """True if the file does not begin with a header. Such a file may be of any kind."""


class TarWalk:
    """The members of one tar file, in order."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._start = 0
        self._window = b""
        self.has_end = False
        """Whether the blocks that end an archive were found."""
        self.end_note = ""
        """What is unusual about the end of the archive. It is known only after the last member is
        read."""

    def members(self) -> Iterator[TarMember]:
        """All members."""
        extended: dict[str, str] = {}
        at, last = 0, ""
        while (block := self._read(at)) or not at:
            if block == _EMPTY:
                self.has_end = True
                if self._reader.read_at(at + _BLOCK, _AFTER).strip(b"\0"):
                    self.end_note = f"it ends at byte {at}, but data follow"
                return
            header = self._header(block, at)
            data = at + _BLOCK
            if header.type in (*_PAX, *_GNU, tarfile.XGLTYPE):
                self._extend(extended, header, data)
                at = data + _padded(header.size)
                continue
            if header.type == tarfile.GNUTYPE_SPARSE:
                more, flag = block, 482  # whether another header follows
                while len(more) == _BLOCK and more[flag]:
                    more, flag, data = self._read(data), 504, data + _BLOCK
            member = _member(header, extended, data)
            end = data + member.size
            if end > self._reader.size:
                why = f"it ends at byte {self._reader.size}, but a member should end at {end}"
                raise TarDamage(why, member.name)
            if header.type != b"V":  # not the label of a volume
                yield member
            at, last, extended = data + _padded(member.size), member.name, {}
        if extended or self._reader.size % _BLOCK:
            where = "before a member" if extended else "inside a block"
            raise TarDamage(f"it is cut at byte {self._reader.size}, {where}", last)
        self.end_note = "it ends without the blocks that end an archive"

    def _header(self, block: bytes, at: int) -> tarfile.TarInfo:
        try:
            header = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except tarfile.HeaderError as error:
            what = f"the header at byte {at} is damaged: {error}"
            if len(block) < _BLOCK:
                what = f"it ends at byte {self._reader.size}, inside a header"
            raise TarDamage(what, is_other=not at and bool(block)) from None
        if header.size < 0:
            raise TarDamage(f"the header at byte {at} has a negative size, {header.size}")
        return header

    def _extend(self, extended: dict[str, str], header: tarfile.TarInfo, at: int) -> None:
        """Apply the entries of an extended header to the next member."""
        if header.size > _MAX_EXTENDED:
            raise TarDamage(f"the extended header at byte {at} is too large: {header.size} bytes")
        data = self._reader.read_at(at, header.size)
        if len(data) < header.size:
            raise TarDamage(f"it ends at byte {self._reader.size}, inside an extended header")
        if header.type == tarfile.GNUTYPE_LONGNAME:
            extended["path"] = _text(data.partition(b"\0")[0])
        elif header.type in _PAX:
            extended.update(_pax(data, at))
        elif header.type == tarfile.XGLTYPE and {"path", "size"} & _pax(data, at).keys():
            raise TarDamage(f"the global header at byte {at} sets a name or size for all members")

    def _read(self, at: int) -> bytes:
        """The block at `at`."""
        first = at - self._start
        if not 0 <= first <= len(self._window) - _BLOCK:
            self._start, first = at, 0
            self._window = self._reader.read_at(at, _WINDOW)
        return self._window[first : first + _BLOCK]


def _pax(data: bytes, at: int) -> dict[str, str]:
    """The records of an extended header: ``LENGTH KEY=VALUE`` and a line feed."""
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
        raise TarDamage(f"the extended header at byte {at} has a size that is not a number")
    return found


def _member(header: tarfile.TarInfo, extended: dict[str, str], data: int) -> TarMember:
    name = extended.get("path", header.name).removeprefix("./")
    if header.isdir():
        return TarMember(name, "dir", data)
    has_data = header.isreg() or header.type not in tarfile.SUPPORTED_TYPES
    size = int(extended.get("size", header.size)) if has_data else 0
    if any(each.startswith("GNU.sparse") for each in extended):
        refused = _REFUSED[tarfile.GNUTYPE_SPARSE]
    else:
        other = "" if header.isreg() else f"not a file, but a member of the type {header.type!a}"
        refused = _REFUSED.get(header.type, other)
    refused = refused or _why_unsafe(name)
    return TarMember(name, "refused" if refused else "file", data, size, refused)


def _why_unsafe(name: str) -> str:
    """The reason if a name is not the path of a file inside the archive; else empty."""
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
    return -(-size // _BLOCK) * _BLOCK

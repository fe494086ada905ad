"""Parts as JSON: what nearly every validator's are made of is plain data, and tallies."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

import msgspec
from blake3 import blake3

from tfrecreg.findings import Code
from tfrecreg.scan.interface import Part
from tfrecreg.scan.tally import Tally, TallyRow

__all__ = ["JsonCodec", "Plain", "key_from"]


class Plain(Protocol):
    """A class of one's own that may be in a part: it knows itself as plain data."""

    plain_type: ClassVar[Any]
    """The type of that data, as an annotation would have it."""

    def plain(self) -> Any:
        """All of it."""

    @classmethod
    def of_plain(cls, plain: Any) -> Any:
        """Made again. Raises ValueError for data that it would not have given."""


class JsonCodec:
    """Parts of one type: a dataclass or a named tuple of plain data, tallies and :class:`Plain`.

    A part is read strictly by its type, so bytes of another version that has other fields are no
    part. Texts that are not UTF-8 (names of files with surrogate escapes) cannot be packed: that
    is a UnicodeEncodeError.

    Args:
        part: the type, its fields annotated.
        codes: of the findings in its tallies.
    """

    def __init__(self, part: Any, codes: Sequence[Code] = ()) -> None:
        self._part = part
        self._codes = tuple(codes)

    def pack(self, part: Part) -> bytes:
        return msgspec.json.encode(part, enc_hook=_plain)

    def unpack(self, data: bytes) -> Part:
        return msgspec.json.decode(data, type=self._part, dec_hook=self._made)

    def _made(self, kind: Any, plain: Any) -> Any:
        if kind is Tally:
            return Tally.of_rows(msgspec.convert(plain, list[TallyRow]), self._codes)
        return kind.of_plain(msgspec.convert(plain, kind.plain_type))


def _plain(value: Any) -> Any:
    return value.rows() if isinstance(value, Tally) else value.plain()


def key_from(*texts: str | None, options: Mapping[str, Any] | None = None) -> str:
    """A `part_key`: the digest of some texts and of a validator's options."""
    plain = json.dumps([*texts, dict(options or {})], sort_keys=True, default=repr)
    return blake3(plain.encode("ascii")).hexdigest()

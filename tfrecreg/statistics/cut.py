"""Images cut out of serialized Examples: what is left is quick to decode, the sizes are kept.

TFDV asks of a feature with an image domain how many values there are and how large they are. Both
are in the tags and lengths of the wire format, so each value is replaced by an empty one before
anybody decodes it, and :mod:`.columns` gives the decoded column its sizes back.
"""

from __future__ import annotations

from collections.abc import Iterable

from tfrecreg.example import Example, bytes_feature, encode
from tfrecreg.example.model import Kind
from tfrecreg.example.wire import varint

Sizes = dict[str, list[int]]
"""Of each image feature, the bytes of every value that was cut out, in order."""

_EMPTY = b"\n\x00"
"""An empty value of a `BytesList`."""
_MAX_STUBS = 64


class Cutter:
    """Cuts the values of some features out of Examples.

    Args:
        features: their names.
    """

    def __init__(self, features: Iterable[str]) -> None:
        self._names = {name.encode(): name for name in features}
        self._stubs: dict[tuple[str, int], bytes] = {}

    def cut(self, memory: bytes, start: int, length: int) -> tuple[bytes, Sizes] | None:
        """The Example at `start` with empty values in place of the images, and their sizes.

        Features that hold no bytes are left as they are, whatever the schema says of them.

        Args:
            memory: holds the payload.
            start: where it starts there.
            length: its bytes.

        Returns:
            None where the payload is not what encoders write: then it may be no Example.
        """
        try:
            return self._cut(memory, start, start + length)
        except IndexError:
            return None

    def cut_decoded(self, example: Example) -> tuple[bytes, Sizes]:
        """As :meth:`cut`, of an Example that was decoded."""
        features = dict(example)
        sizes: Sizes = {}
        for name in self._names.values():
            feature = features.get(name)
            if feature is not None and feature.kind is Kind.BYTES:
                sizes[name] = [len(value) for value in feature.values]
                features[name] = bytes_feature([b""] * feature.count)
        return encode(features), sizes

    def _cut(self, memory: bytes, start: int, end: int) -> tuple[bytes, Sizes] | None:
        if start == end:
            return b"", {}
        size, position = _length(memory, start + 1)
        if memory[start] != 0x0A or position + size != end:
            return None
        pieces: list[bytes] = []
        cut: Sizes = {}
        kept = position
        names = self._names
        while position < end:
            # Most lengths are of one byte, and a call takes longer than all else here.
            size = memory[position + 1]
            inside = position + 2
            if size > 127:
                size, inside = _length(memory, position + 1)
            behind = inside + size
            if memory[position] != 0x0A or memory[inside] != 0x0A or behind > end:
                return None
            size = memory[inside + 1]
            first = inside + 2
            if size > 127:
                size, first = _length(memory, inside + 1)
            value = first + size
            name = names.get(memory[first:value])
            if name is not None:
                values = _values(memory, value, behind)
                if values is None or name in cut:
                    return None
                cut[name] = values
                pieces += (memory[kept:position], self._stub(name, len(values)))
                kept = behind
            position = behind
        pieces.append(memory[kept:end])
        rest = b"".join(pieces)
        return b"".join((b"\n", varint(len(rest)), rest)), cut

    def _stub(self, name: str, count: int) -> bytes:
        """The map entry of a feature with so many empty values."""
        stub = self._stubs.get((name, count))
        if stub is None:
            values = _field(0x0A, _EMPTY * count)
            stub = _field(0x0A, _field(0x0A, name.encode()) + _field(0x12, values))
            if len(self._stubs) < _MAX_STUBS:
                self._stubs[name, count] = stub
        return stub


def _values(memory: bytes, position: int, end: int) -> list[int] | None:
    """The sizes of the values of the `Feature` field at `position`, which reaches to `end`."""
    size, inside = _length(memory, position + 1)
    if memory[position] != 0x12 or inside + size != end or not size or memory[inside] != 0x0A:
        return None
    size, position = _length(memory, inside + 1)
    if position + size != end:
        return None
    sizes = []
    while position < end:
        if memory[position] != 0x0A:
            return None
        size, position = _length(memory, position + 1)
        sizes.append(size)
        position += size
    return sizes if position == end else None


def _length(memory: bytes, position: int) -> tuple[int, int]:
    """The length at `position`, and where it ends.

    Raises:
        IndexError: it is longer than lengths in a payload are.
    """
    size = memory[position]
    position += 1
    if size < 128:
        return size, position
    size &= 127
    for shift in (7, 14, 21, 28):
        byte = memory[position]
        position += 1
        size |= (byte & 127) << shift
        if byte < 128:
            return size, position
    raise IndexError("a length of more than five bytes")


def _field(tag: int, content: bytes) -> bytes:
    return bytes((tag,)) + varint(len(content)) + content

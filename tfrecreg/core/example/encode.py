"""Examples to bytes, in the canonical form that `docs/formats.md` describes."""

from __future__ import annotations

from tfrecreg.core.example.model import Example, Feature, value_head
from tfrecreg.core.example.wire import varint, varint_size
from tfrecreg.core.values.text import safe

_MAX_PAYLOAD = 2**31 - 1  # protobuf's own limit, in every language

_VIEWED = 4096  # bytes from which a view is cheaper than a copy

# A dataset has few keys and many examples. The cache is bounded: a hostile dataset may have a new
# key in every record.
_PREFIXES: dict[str, bytes] = {}
_MAX_PREFIXES = 4096
_MAX_KEPT_KEY = 256

_HEADS = tuple(b"\n" + varint(size) for size in range(1024))


def encode(example: Example) -> bytes:
    """`example` in canonical form: equal examples give equal bytes, for any order of their
    features.

    Raises:
        TypeError: a key is not a string, or a value is not a :class:`Feature`.
        ValueError: a key holds a lone surrogate, or the payload would exceed protobuf's 2 GiB.

    Example:
        >>> tr.encode(tr.to_example({"label": 7})).hex()
        '0a100a0e0a056c6162656c12051a030a0107'
    """
    parts: list[bytes | memoryview] = [b""]
    total = 0
    # Strings sort by code point, which is the order of their UTF-8 bytes.
    for key in sorted(example):
        feature = example[key]
        prefix = _PREFIXES.get(key) or _prefix(key)
        if not isinstance(feature, Feature):
            raise TypeError(f"`{safe(key)}` is a `{type(feature).__name__}`, expected a `Feature`")
        source = feature._source
        if source is None:
            tail, size = _loose(feature)
            size += len(prefix)
            head = b"\n" + varint(size)
            parts += (head, prefix, *tail)
        else:
            start, end = feature._field, feature._end
            size = end - start
            field = source[start:end] if size < _VIEWED else memoryview(source)[start:end]
            size += len(prefix)
            head = _HEADS[size] if size < 1024 else b"\n" + varint(size)
            parts += (head, prefix, field)
        total += size + len(head)
    if not total:
        return b""
    parts[0] = b"\n" + varint(total)
    if 1 + varint_size(total) + total > _MAX_PAYLOAD:
        raise ValueError(
            f"the example takes {total} bytes, more than the {_MAX_PAYLOAD} that protobuf can read"
        )
    return b"".join(parts)


def _prefix(key: str) -> bytes:
    """The key field of a map entry."""
    if not isinstance(key, str):
        raise TypeError(f"a feature key is a `{type(key).__name__}`, expected a string")
    try:
        raw = key.encode()
    except UnicodeEncodeError:
        raise ValueError(f"the feature key `{safe(key)}` holds a lone surrogate") from None
    prefix = b"\n" + varint(len(raw)) + raw
    if len(raw) <= _MAX_KEPT_KEY:
        if len(_PREFIXES) >= _MAX_PREFIXES:
            _PREFIXES.clear()
        _PREFIXES[key] = prefix
    return prefix


def _loose(feature: Feature) -> tuple[list[bytes], int]:
    """The value field of a BYTES feature with large values, in pieces, and its length."""
    pieces: list[bytes] = [b""]
    for value in feature.values:
        pieces += (b"\n" + varint(len(value)), value)
    body = sum(map(len, pieces))
    pieces[0] = value_head(feature.kind, body)
    return pieces, len(pieces[0]) + body

"""Converts bytes to examples, and to their canonical form.

There are two readers. The fast reader accepts payloads whose map entries are all canonical, in any
order. Protobuf's own encoders write only such entries. The full reader reads all other payloads,
valid or not, and follows all of protobuf's rules. The reference is protobuf's own parser (upb,
which TensorFlow uses in Python), including its corner cases: `docs/formats.md` lists them. The
messages have only five levels, so there is no recursion. Groups can be nested to any depth, so
their levels are counted, up to 100.
"""

from __future__ import annotations

from contextlib import suppress

from tfrecreg.core.example.model import (
    DELIMITED,
    FIXED32,
    VARINT,
    Example,
    Feature,
    Kind,
    NotAnExampleError,
    count_minimal,
    encode,
    fields,
    pack_varints,
    packed_feature,
    read_varint,
    varint,
    varints,
)

_UNSET, _BYTES, _FLOAT, _INT64 = Kind

# A dataset has few keys and many records, so decoded keys are cached. The cache is bounded: a
# hostile dataset may have a new key in every record.
_KEYS: dict[bytes, str] = {}
_MAX_KEYS = 4096
_MAX_KEPT_KEY = 256


def decode(payload: bytes) -> Example:
    """The features that protobuf finds in `payload`, by name.

    Large values are not copied: the features reference `payload`. Fields that `tf.train.Example`
    does not have are ignored, as in TensorFlow:
    https://github.com/tfrecreg/tfrecreg/tree/main/docs/formats.md

    Raises:
        NotAnExampleError: TensorFlow could not parse `payload` either.

    Example:
        >>> payload = tr.encode(tr.to_example({"label": 7}))
        >>> tr.decode(payload)["label"].values
        (7,)
    """
    found = decode_fast(payload)
    return decode_fully(payload)[0] if found is None else found[0]


def decode_or_none(payload: bytes) -> Example | None:
    """Like :func:`decode`; None if the payload is not a `tf.train.Example`."""
    try:
        return decode(payload)
    except NotAnExampleError:
        return None


def canonical(payload: bytes) -> bytes:
    """The canonical form of `payload`, which is the same for all payloads with the same content.

    A payload that is not a `tf.train.Example`, or has unknown fields, is its own canonical form.
    """
    return decode_with_form(payload)[1]


def decode_with_form(payload: bytes) -> tuple[Example | None, bytes, bool]:
    """The features (None if `payload` is not a `tf.train.Example`), the canonical form of
    `payload`, and whether it has unknown fields.
    """
    found = decode_fast(payload)
    if found is not None:
        features, ordered = found
        return features, payload if ordered else encode(features), False
    try:
        features, unknown = decode_fully(payload)
    except NotAnExampleError:
        return None, payload, False
    return features, payload if unknown else encode(features), unknown


def decode_fast(payload: bytes) -> tuple[dict[str, Feature], bool] | None:
    """The features, and whether `payload` is canonical; None if it needs :func:`decode_fully`."""
    if not payload:
        return {}, True
    try:
        return _features(payload)
    except (IndexError, UnicodeDecodeError):
        return None


def _features(payload: bytes) -> tuple[dict[str, Feature], bool] | None:
    size = payload[1]
    position = 2
    if size > 127:
        size, position = _long(payload, position, size)
    last = len(payload)
    if payload[0] != 0x0A or not size or position + size != last:
        return None
    features: dict[str, Feature] = {}
    ordered = True
    previous = b""
    while position < last:
        size = payload[position + 1]
        start = position + 2
        if size > 127:
            size, start = _long(payload, start, size)
        end = start + size
        if payload[position] != 0x0A or payload[start] != 0x0A or end > last:
            return None
        # The key.
        size = payload[start + 1]
        position = start + 2
        if size > 127:
            size, position = _long(payload, position, size)
        field = position + size
        raw = payload[position:field]
        key = _KEYS.get(raw) or _key(raw)
        # The value.
        size = payload[field + 1]
        start = field + 2
        if size > 127:
            size, start = _long(payload, start, size)
        if payload[field] != 0x12 or start + size != end:
            return None
        feature = _feature(payload, field, start, end)
        if feature is None:
            return None
        # If a key occurs twice, the last entry applies, as always in protobuf.
        if raw <= previous and features:
            ordered = False
        features[key] = feature
        previous = raw
        position = end
    return features, ordered


def _feature(payload: bytes, field: int, position: int, end: int) -> Feature | None:
    if position == end:
        return Feature(_UNSET, 0, payload, field, end, end)
    tag = payload[position]
    size = payload[position + 1]
    position += 2
    if size > 127:
        size, position = _long(payload, position, size)
    if position + size != end:
        return None
    count = 0
    if tag == 0x0A:
        start = position
        while position < end:
            size = payload[position + 1]
            if payload[position] != 0x0A:
                return None
            position += 2
            if size > 127:
                size, position = _long(payload, position, size)
            position += size
            count += 1
        return Feature(_BYTES, count, payload, field, start, end) if position == end else None
    if tag != 0x12 and tag != 0x1A:
        return None
    if size:
        if payload[position] != 0x0A:
            return None
        size = payload[position + 1]
        position += 2
        if size > 127:
            size, position = _long(payload, position, size)
        if position + size != end or not size:
            return None
        if tag == 0x1A:
            count = (
                1 if size == 1 and payload[position] < 128 else count_minimal(payload[position:end])
            )
        else:
            count = -1 if size & 3 else size >> 2
        if count < 0:
            return None
    return Feature(_INT64 if tag == 0x1A else _FLOAT, count, payload, field, position, end)


def _long(payload: bytes, position: int, first: int) -> tuple[int, int]:
    """Read the rest of a length whose `first` byte is known. Returns the length and its end."""
    size = first & 127
    for shift in (7, 14, 21, 28):
        byte = payload[position]
        position += 1
        size |= (byte & 127) << shift
        if byte < 128:
            if not byte:
                break
            return size, position
    raise IndexError("a length that is padded, or too long")


def _key(raw: bytes) -> str:
    key = raw.decode()
    if len(raw) <= _MAX_KEPT_KEY and len(_KEYS) < _MAX_KEYS:
        _KEYS[raw] = key
    return key


# Maximum depth of groups in each message: protobuf's 100 levels minus the messages' levels.
_IN_EXAMPLE, _IN_FEATURES, _IN_ENTRY, _IN_FEATURE, _IN_LIST = range(100, 95, -1)

_MAX_PAYLOAD = 2**31 - 1


def decode_fully(payload: bytes) -> tuple[dict[str, Feature], bool]:
    """The features in `payload`, and whether it has fields unknown to `tf.train.Example`."""
    if len(payload) > _MAX_PAYLOAD:
        raise NotAnExampleError(_MAX_PAYLOAD, "more than the 2 GiB that protobuf can read")
    features: dict[str, Feature] = {}
    unknown = False
    for tag, start, end in fields(payload, 0, len(payload), _IN_EXAMPLE):
        if tag != (1, DELIMITED):
            unknown = True
            continue
        for inner, first, last in fields(payload, start, end, _IN_FEATURES):
            if inner != (1, DELIMITED):
                unknown = True
                continue
            key, feature, strange = _read_entry(payload, first, last)
            unknown = unknown or strange
            if feature is not None:
                features[key] = feature
    return features, unknown


def _read_entry(payload: bytes, start: int, end: int) -> tuple[str, Feature | None, bool]:
    """The key, the value, and whether any field is unknown. As in upb, the value is hidden if an
    unknown field is in the entry itself.
    """
    key = ""
    value = FeatureReader(payload)
    strange = False
    for tag, first, last in fields(payload, start, end, _IN_ENTRY):
        if tag == (1, DELIMITED):
            try:
                key = payload[first:last].decode()
            except UnicodeDecodeError as error:
                raise NotAnExampleError(
                    first + error.start, "a feature key that is not UTF-8"
                ) from None
        elif tag == (2, DELIMITED):
            value.add(first, last)
        else:
            strange = True
    return key, None if strange else value.feature(), strange or value.unknown


class FeatureReader:
    """Reads a map entry's `Feature`, which may come in several pieces that protobuf merges."""

    def __init__(self, payload: bytes) -> None:
        self.unknown = False
        """Whether there were fields that a `Feature` does not have."""
        self._payload = payload
        self._first: Feature | None = None  # the only piece so far, if it is canonical
        self._span = (0, 0)  # of the first piece
        self._pieces = 0
        self._kind = 0
        self._count = 0
        self._body = bytearray()

    def add(self, start: int, end: int) -> None:
        """Merge the `Feature` message at `start` to `end`."""
        self._pieces += 1
        if self._pieces == 1:
            # Do not copy large values if the bytes before the values are canonical.
            head = b"\x12" + varint(end - start)
            field = start - len(head)
            if self._payload[field:start] == head:
                with suppress(IndexError):  # it is not canonical
                    self._first = _feature(self._payload, field, start, end)
                self._span = start, end
            if self._first is not None:
                return
        if self._first is not None:
            self._first = None
            self._merge(*self._span)
        self._merge(start, end)

    def feature(self) -> Feature:
        """All pieces as one feature."""
        if self._first is not None:
            return self._first
        return packed_feature(Kind(self._kind), self._count, bytes(self._body))

    def _merge(self, start: int, end: int) -> None:
        for (number, wire), first, last in fields(self._payload, start, end, _IN_FEATURE):
            if wire != DELIMITED or number > 3:
                self.unknown = True
                continue
            if number != self._kind:
                self._kind, self._count, self._body = number, 0, bytearray()
            self._values(first, last)

    def _values(self, start: int, end: int) -> None:
        """Append the values of the list message that starts at `start` and ends at `end`."""
        payload, kind = self._payload, self._kind
        for tag, first, last in fields(payload, start, end, _IN_LIST):
            if tag == (1, DELIMITED):
                size = last - first
                if kind == Kind.BYTES:
                    self._count += 1
                    self._body += b"\n" + varint(size)
                    self._body += memoryview(payload)[first:last]
                elif kind == Kind.FLOAT:
                    if size % 4:
                        raise NotAnExampleError(
                            first, f"packed floats of {size} bytes, not a multiple of 4"
                        )
                    self._count += size // 4
                    self._body += payload[first:last]
                else:
                    self._integers(first, last)
            elif tag == (1, VARINT) and kind == Kind.INT64:
                self._integers(first, last)
            elif tag == (1, FIXED32) and kind == Kind.FLOAT:
                self._count += 1
                self._body += payload[first:last]
            else:
                self.unknown = True

    def _integers(self, start: int, end: int) -> None:
        packed = self._payload[start:end]
        count = count_minimal(packed)
        if count < 0:
            position = start
            while position < end:
                position = read_varint(self._payload, position, end)[1]
            numbers = list(varints(packed))
            packed, count = pack_varints(numbers), len(numbers)
        self._count += count
        self._body += packed

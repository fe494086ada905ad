"""Targets of `make fuzz`.

Each target takes edited sound bytes, or any bytes, and raises if a promise is broken.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
import random
from collections.abc import Callable, Mapping
from typing import Any

import google_crc32c
from blake3 import blake3
from check_support import framed
from hypothesis import strategies as st
from image_support import bmp, gif, jpeg, png, webp
from memory_support import see
from registry_support import manifest

from tfrecreg.core.example.decode import canonical, decode, decode_or_none
from tfrecreg.core.example.kinds import decode_sequence, payload_kind
from tfrecreg.core.example.model import NotAnExampleError, encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature, unset_feature
from tfrecreg.core.images.model import ImageError
from tfrecreg.core.images.read import is_truncated, read_header, sniff
from tfrecreg.core.records.framing import frame_header, unmask
from tfrecreg.core.records.gzip_writer import GzipEncoder
from tfrecreg.core.records.hashing import record_digest
from tfrecreg.core.records.index import IndexBuilder, read_index
from tfrecreg.core.records.reading.offsets import parse_sidecar
from tfrecreg.core.registry.manifest import SplitEntry, parse_manifest, render_manifest
from tfrecreg.core.schema.proto import parse_schema, render_schema
from tfrecreg.core.values.codes import CORE_CODES
from tfrecreg.core.values.errors import SchemaError, TfrecregError


@dataclasses.dataclass(frozen=True)
class Target:
    """A parser to fuzz."""

    inputs: st.SearchStrategy[Any]
    check: Callable[[Any], None]
    """Raises if an input breaks a promise."""


_DICE = random.Random(4)
_PAYLOADS = [
    b"",
    _DICE.randbytes(70),
    bytes(40),
    framed(b"nested", b"records", b""),
    encode({"image": bytes_feature(_DICE.randbytes(90)), "label": int64_feature(7)}),
    *(_DICE.randbytes(n) for n in (1, 12, 30)),
]
_STREAM = framed(*_PAYLOADS)


def _members(size: int) -> tuple[bytes, list[tuple[int, int]]]:
    encoder = GzipEncoder(size)
    return b"".join(encoder.write(framed(each)) for each in _PAYLOADS) + encoder.close(), (
        encoder.members
    )


def _offsets() -> list[int]:
    offsets = [0]
    for payload in _PAYLOADS[:-1]:
        offsets.append(offsets[-1] + len(payload) + 16)
    return offsets


_SPECIAL = (
    b"\x1f\x8b\x08\x00",
    gzip.compress(b"", mtime=0),
    frame_header(0),
    frame_header(2**31),
    frame_header(2**40),
    frame_header(2**64 - 1),
    framed(b"one more"),
)


@st.composite
def edited(draw: st.DrawFn, *sound: bytes) -> bytes:
    """Some of `sound`, with a few bytes changed, put in, taken out or repeated."""
    data = bytearray(draw(st.sampled_from(sound)))
    for _ in range(draw(st.integers(0, 5))):
        at = draw(st.integers(0, len(data)))
        kind = draw(
            st.sampled_from(("flip", "put", "insert", "delete", "repeat", "cut", "special"))
        )
        if kind == "flip" and at < len(data):
            data[at] ^= 1 << draw(st.integers(0, 7))
        elif kind == "put":
            piece = draw(st.binary(max_size=24))
            data[at : at + len(piece)] = piece
        elif kind == "insert":
            data[at:at] = draw(st.binary(max_size=24))
        elif kind == "delete":
            del data[at : at + draw(st.integers(1, 60))]
        elif kind == "repeat":
            data[at:at] = data[at : at + draw(st.integers(1, 200))]
        elif kind == "special":
            data[at:at] = draw(st.sampled_from(_SPECIAL))
        else:
            del data[at:]
    return bytes(data)


def _anything(*sound: bytes) -> st.SearchStrategy[bytes]:
    return st.one_of(edited(*sound), edited(*sound), edited(*sound), st.binary(max_size=400))


def _scanned(data: bytes, options: Mapping[str, Any]) -> None:
    """For any bytes of a shard, each record and each fault is reported once and in order."""
    seen = see(data, **options)
    offsets = [offset for _, offset, _ in seen.records]
    assert offsets == sorted(set(offsets))
    numbers = [number for number, _, _ in seen.records]
    assert numbers == sorted(set(numbers))
    assert seen.end.file_bytes == len(data)
    assert seen.end.blake3 in (None, blake3(data).hexdigest())
    for fault in seen.faults:
        assert fault.code in CORE_CODES
        assert fault.tensorflow in CORE_CODES[fault.code].tensorflow
        assert fault.detail.isprintable()
    if not seen.faults:
        assert 16 * seen.end.records + seen.end.payload_bytes == seen.end.stream_bytes
    for _, offset, payload in seen.records:
        if payload is not None and seen.end.compression == "none":
            assert data[offset + 12 : offset + 12 + len(payload)] == payload
            assert google_crc32c.value(payload) == unmask(
                int.from_bytes(data[offset + 12 + len(payload) :][:4], "little")
            )


_OPTIONS = st.fixed_dictionaries(
    {
        "batch_bytes": st.sampled_from((1, 30, 1 << 20)),
        "hold_limit": st.sampled_from((20, 1 << 20)),
        "digest": st.booleans(),
        "declared": st.sampled_from((None, "none", "gzip")),
        "known_offsets": st.one_of(
            st.just(()), st.just(_offsets()), st.lists(st.integers(0, 900)).map(sorted)
        ),
        "members": st.one_of(
            st.just(()),
            st.just(_members(100)[1]),
            st.lists(st.tuples(st.integers(0, 900), st.integers(0, 900))).map(sorted),
        ),
    }
)


def _example(payload: bytes) -> None:
    """A payload is an Example with one canonical form, or none, and everybody agrees on that."""
    found = decode_or_none(payload)
    form = canonical(payload)
    kind = payload_kind(payload)
    decode_sequence(payload)
    assert len(record_digest(payload)) == 16
    if found is None:
        try:
            decode(payload)
        except NotAnExampleError:
            assert kind is not None
        else:
            raise AssertionError("decode takes what decode_or_none refuses")
        return
    assert canonical(form) == form
    again = encode(found)
    assert decode(again) == found or b"\x7f\xc0" in again or "nan" in repr(found)
    assert encode(decode(again)) == again


_FEATURES = st.one_of(
    st.lists(st.binary(max_size=8), max_size=3).map(bytes_feature),
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3).map(int64_feature),
    st.lists(st.floats(width=32), max_size=3).map(float_feature),
    st.just(unset_feature()),
)
_EXAMPLES = st.dictionaries(st.text(max_size=6), _FEATURES, max_size=4)


def _round_trip(example: Mapping[str, Any]) -> None:
    payload = encode(dict(example))
    assert canonical(payload) == payload
    assert encode(decode(payload)) == payload


def _index() -> bytes:
    builder = IndexBuilder()
    for number, payload in enumerate(_PAYLOADS):
        builder.add(record_digest(payload), len(payload), f"key/{number}")
    return builder.render(_members(100)[1])


def _resealed(data: bytes) -> bytes:
    """The same with a valid digest, so that the content is parsed as well."""
    return data[:-32] + blake3(data[:-32]).digest()


def _read_index(data: bytes) -> None:
    for each in (data, _resealed(data)):
        try:
            index = read_index(each, "x.index")
        except TfrecregError:
            continue
        assert len(index.offsets()) == len(index.lengths) == len(index)
        for number in range(min(len(index), 20)):
            index.key(number)
        _scanned(_STREAM, {"known_offsets": index.offsets(), "members": index.members})


def _sidecar(data: bytes) -> None:
    try:
        offsets = parse_sidecar(data, "x.idx")
    except TfrecregError:
        return
    _scanned(_STREAM, {"known_offsets": offsets})


_MANIFEST = render_manifest(
    manifest("digits", splits=[SplitEntry(name="train", records=2, payload_bytes=8, content="0")])
)


def _manifest(data: bytes) -> None:
    try:
        found = parse_manifest(data, "manifest.json")
    except TfrecregError:
        return
    assert parse_manifest(render_manifest(found), "manifest.json") == found


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


@st.composite
def _manifests(draw: st.DrawFn) -> bytes:
    """A manifest with another value in some of its places."""
    tree = json.loads(_MANIFEST)
    for _ in range(draw(st.integers(0, 3))):
        inside = tree
        place = draw(st.sampled_from(sorted(inside)))
        while isinstance(inside[place], dict | list) and inside[place] and draw(st.booleans()):
            inside = inside[place]
            names = sorted(inside) if isinstance(inside, dict) else range(len(inside))
            place = draw(st.sampled_from(names))
        inside[place] = draw(_JSON)
    return json.dumps(tree).encode()


_SCHEMA = b"""feature { name: "image/encoded" type: BYTES presence { min_fraction: 1.0 }
  shape { dim { size: 1 } } image_domain {} }
feature { name: "label" type: INT int_domain { min: 0 max: 9 is_categorical: true } }
string_domain { name: "words" value: "a" value: "b" }
"""


def _parse_schema(data: bytes) -> None:
    try:
        schema = parse_schema(data)
    except SchemaError:
        return
    text = render_schema(schema)
    assert render_schema(parse_schema(text)) == text


_IMAGES = (png(3, 2), jpeg(5, 4), gif(), webp(), webp(kind="VP8L"), webp(kind="VP8X"), bmp())


def _image(data: bytes) -> None:
    assert sniff(data) is None or isinstance(sniff(data), str)
    try:
        header = read_header(data)
    except ImageError:
        return
    assert header.width > 0
    assert header.height > 0
    assert is_truncated(data) in (True, False)


TARGETS: Mapping[str, Target] = {
    "framing": Target(
        st.tuples(_anything(_STREAM), _OPTIONS), lambda each: _scanned(each[0], each[1])
    ),
    "gzip": Target(
        st.tuples(
            _anything(_members(100)[0], _members(1 << 20)[0], gzip.compress(_STREAM, mtime=0)),
            _OPTIONS,
        ),
        lambda each: _scanned(each[0], each[1]),
    ),
    "example": Target(_anything(*_PAYLOADS[4:5]), _example),
    "example-round-trip": Target(_EXAMPLES, _round_trip),
    "index": Target(_anything(_index()), _read_index),
    "sidecar": Target(_anything(b"0 16\n16 86\n102 56\n"), _sidecar),
    "manifest": Target(
        st.one_of(
            edited(_MANIFEST), _manifests(), _JSON.map(lambda value: json.dumps(value).encode())
        ),
        _manifest,
    ),
    "schema": Target(_anything(_SCHEMA), _parse_schema),
    "image": Target(_anything(*_IMAGES), _image),
}

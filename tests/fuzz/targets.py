"""Targets of `make fuzz`.

Each target takes edited sound bytes, or any bytes, and raises if a promise is broken.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import google_crc32c
import pytest
from blake3 import blake3
from check_support import framed, members, places
from hypothesis import strategies as st
from image_support import bmp, gif, jpeg, png, webp
from memory_support import see
from mutants_support import Compression, mutate
from registry_support import manifest
from salvage_support import make

from tfrecreg.core.example.decode import canonical, decode, decode_or_none
from tfrecreg.core.example.kinds import decode_sequence, payload_kind
from tfrecreg.core.example.model import NotAnExampleError, encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature, unset_feature
from tfrecreg.core.images.model import ImageError
from tfrecreg.core.images.read import is_truncated, read_header, sniff
from tfrecreg.core.records.framing import unmask
from tfrecreg.core.records.hashing import record_digest
from tfrecreg.core.records.index import read_index
from tfrecreg.core.records.reading.offsets import parse_sidecar
from tfrecreg.core.registry.manifest import SplitEntry, parse_manifest, render_manifest
from tfrecreg.core.schema.proto import parse_schema, render_schema
from tfrecreg.core.values.codes import CORE_CODES
from tfrecreg.core.values.errors import SchemaError, TfrecregError


class Target(NamedTuple):
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
_MADE = make(_PAYLOADS, 100)


@st.composite
def edited(draw: st.DrawFn, *sound: bytes) -> bytes:
    """Some of `sound`, after a few edits."""
    data, dice = draw(st.sampled_from(sound)), draw(st.randoms())
    compression: Compression = "gzip" if data[:2] == b"\x1f\x8b" else "none"
    for _ in range(draw(st.integers(0, 5))):
        data = mutate(dice, data, tuple(_PAYLOADS), compression, [])
    return data


def _anything(*sound: bytes) -> st.SearchStrategy[bytes]:
    return st.one_of(edited(*sound), edited(*sound), edited(*sound), st.binary(max_size=400))


def _scanned(given: tuple[bytes, Mapping[str, Any]]) -> None:
    """For any bytes of a shard, each record and each fault is reported once and in order."""
    data, options = given
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
            st.just(()),
            st.just([at for at, _ in places(_STREAM)]),
            st.lists(st.integers(0, 900)).map(sorted),
        ),
        "members": st.one_of(
            st.just(()),
            st.just(_MADE.members),
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
        assert kind is not None
        with pytest.raises(NotAnExampleError):
            decode(payload)
        return
    assert canonical(form) == form
    again = encode(found)
    assert canonical(again) == again
    assert decode(again) == found or b"\x7f\xc0" in again or "nan" in repr(found)
    assert encode(decode(again)) == again


_FEATURES = st.one_of(
    st.lists(st.binary(max_size=8), max_size=3).map(bytes_feature),
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3).map(int64_feature),
    st.lists(st.floats(width=32), max_size=3).map(float_feature),
    st.just(unset_feature()),
)
_EXAMPLES = st.dictionaries(st.text(max_size=6), _FEATURES, max_size=4)


def _read_index(data: bytes) -> None:
    resealed = data[:-32] + blake3(data[:-32]).digest()  # so that the content is parsed as well
    for each in (data, resealed):
        try:
            index = read_index(each, "x.index")
        except TfrecregError:
            continue
        assert len(index.offsets()) == len(index.lengths) == len(index)
        for number in range(min(len(index), 20)):
            index.key(number)
        _scanned((_STREAM, {"known_offsets": index.offsets(), "members": index.members}))


def _sidecar(data: bytes) -> None:
    try:
        offsets = parse_sidecar(data, "x.idx")
    except TfrecregError:
        return
    _scanned((_STREAM, {"known_offsets": offsets}))


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
    sniff(data)
    try:
        header = read_header(data)
    except ImageError:
        return
    assert header.width > 0
    assert header.height > 0
    is_truncated(data)


_COMPRESSED = _MADE.data, members(_PAYLOADS, 1 << 20), gzip.compress(_STREAM, mtime=0)

TARGETS: Mapping[str, Target] = {
    "framing": Target(st.tuples(_anything(_STREAM), _OPTIONS), _scanned),
    "gzip": Target(st.tuples(_anything(*_COMPRESSED), _OPTIONS), _scanned),
    "example": Target(st.one_of(_anything(_PAYLOADS[4]), _EXAMPLES.map(encode)), _example),
    "index": Target(_anything(_MADE.index), _read_index),
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

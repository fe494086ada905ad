"""`quick_totals` gives the totals of the parsed manifest, or None."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tfrecreg.core.registry.manifest import Totals, parse_manifest, quick_totals, totals_of

Harm = Callable[[bytes], bytes]


@pytest.fixture(scope="module")
def data(digits_original: Path) -> bytes:
    return (digits_original / "registry/digits/1.0.0/manifest.json").read_bytes()


def test_they_are_those_of_the_parsed_manifest(data: bytes) -> None:
    found = quick_totals(data, "digits", "1.0.0")
    assert found == totals_of(parse_manifest(data, "here"))
    assert isinstance(found, Totals)
    assert found.records == 260
    assert found.bytes > 1000


def test_who_and_when_are_not_covered(data: bytes) -> None:
    found = json.loads(data)
    other = data.replace(found["provenance"]["created"].encode(), b"1999-12-31T23:59:59Z")
    assert other != data
    assert quick_totals(other, "digits", "1.0.0") == quick_totals(data, "digits", "1.0.0")


HARMS: dict[str, Harm] = {
    "a count": lambda data: data.replace(b'"records":60', b'"records":61', 1),
    "white space": lambda data: data.replace(b",", b", ", 1),
    "a member twice": lambda data: data[:-2] + b',"splits":[]}\n',
    "a member more": lambda data: data[:-2] + b',"zebra":1}\n',
    "a newer format": lambda data: data.replace(b'"format_version":1', b'"format_version":2'),
    "a build's": lambda data: data.replace(b'"release":', b'"releese":'),
    "no newline": lambda data: data[:-1],
    "half of it": lambda data: data[: len(data) // 2],
    "no JSON": lambda _: b"\xff\x00",
    "a list": lambda _: b"[]\n",
    "nested": lambda data: data[:-2] + b',"zebra":' + b"[" * 100_000,
    "nothing": lambda _: b"",
}


@pytest.mark.parametrize("harm", HARMS.values(), ids=HARMS)
def test_what_is_not_as_it_was_written_is_left_to_the_parser(data: bytes, harm: Harm) -> None:
    assert harm(data) != data
    assert quick_totals(harm(data), "digits", "1.0.0") is None
    assert quick_totals(data, "other", "1.0.0") is quick_totals(data, "digits", "1.0.1") is None

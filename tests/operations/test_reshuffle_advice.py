"""When `show` advises a fresh shuffle: a quarter of the records, or ten small shards, behind it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from registry_support import empty_registry, manifest, put_release, write

from tfrecreg.cli.main import main
from tfrecreg.manifest.file import render_manifest, seal
from tfrecreg.manifest.model import Manifest, Parent, ShardEntry, SplitEntry
from tfrecreg.operations.reshuffle_advice import LongTail, long_tails
from tfrecreg.registry.registry import Registry


def sized(*records: int, split: str = "train", base: Manifest | None = None) -> Manifest:
    """A build with shards of so many records, ten bytes each."""
    shards = [
        ShardEntry(
            path=f"{split}{number}",
            bytes=26 * count,
            blake3="",
            sha256="",
            split=split,
            records=count,
            payload_bytes=10 * count,
            stream_blake3="",
            index="",
        )
        for number, count in enumerate(records)
    ]
    total = sum(records)
    entry = SplitEntry(name=split, records=total, payload_bytes=10 * total, content="")
    before: dict[str, Any] = {}
    if base is not None:
        assert base.release is not None
        before["base"] = Parent(version=base.release.version, digest=base.digest)
    return manifest("m", splits=[entry], shards=shards, **before)


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return empty_registry(tmp_path)


def put(registry: Registry, build: Manifest, version: str) -> Manifest:
    return put_release(Path(registry.storage.root), build, version)


@pytest.mark.parametrize(
    ("records", "long"),
    [
        ((300, 300), False),
        ((300, 300, 200), False),  # 200 of 800 are a quarter
        ((300, 300, 201), True),
        ((300, 300, 150), False),
        ((300, 300, *[9] * 9), False),
        ((300, 300, *[9] * 10), True),
        ((300, 200, 100, *[9] * 10), True),
        ((300, *[9] * 10, 150), False),  # what stands before a large one is no tail
        ((290, 290), False),
    ],
)
def test_a_quarter_of_the_records_or_ten_small_shards(
    registry: Registry, records: tuple[int, ...], long: bool
) -> None:
    first = put(registry, sized(300, 300), "1.0.0")
    assert bool(long_tails(registry, sized(*records, base=first))) is long
    assert long_tails(registry, sized(*records)) == ()


def test_many_small_steps_are_counted_from_the_last_fresh_shuffle(registry: Registry) -> None:
    first = put(registry, sized(400), "1.0.0")
    second = put(registry, sized(400, 100, base=first), "1.1.0")
    third = sized(400, 100, 100, base=second)
    assert long_tails(registry, put(registry, third, "1.2.0")) == (
        LongTail(split="train", since="1.0.0", added=200, records=600, small_shards=2),
    )
    fresh = put(registry, sized(200, 200, 200), "1.2.1")
    assert long_tails(registry, sized(200, 200, 200, 50, base=fresh)) == ()


def test_a_split_that_is_new_has_no_tail(registry: Registry) -> None:
    first = put(registry, sized(400), "1.0.0")
    assert long_tails(registry, sized(400, 400, split="test", base=first)) == ()


def test_a_chain_that_is_broken_is_followed_as_far_as_it_goes(registry: Registry) -> None:
    first = put(registry, sized(400), "1.0.0")
    second = put(registry, sized(400, 100, base=first), "1.1.0")
    third = sized(400, 100, 300, base=second)
    write(Path(registry.storage.root) / "registry/m/1.0.0/manifest.json", "{")
    (tail,) = long_tails(registry, third)
    assert (tail.since, tail.added) == ("1.1.0", 300)
    other = seal(replace(second, content="ee" * 32))
    write(Path(registry.storage.root) / "registry/m/1.1.0/manifest.json", render_manifest(other))
    assert long_tails(registry, third) == ()


def test_show_says_so_in_a_line_and_in_a_field(
    registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    first = put(registry, sized(400), "1.0.0")
    put(registry, sized(400, 100, 200, base=first), "1.1.0")

    def show(*arguments: str) -> str:
        assert main(["-C", registry.storage.root, "show", *arguments]) == 0
        return capsys.readouterr().out

    assert "advice" not in show("m@1.0.0")
    (line,) = [each for each in show("m@1.1.0").splitlines() if "advice" in each]
    assert line.split("advice")[1].strip() == (
        "since the shuffle of 1.0.0 the split `train` got 43 % of its records; 0 small shards are "
        "at its end: `tfrecreg build m --base none` makes a fresh shuffle"
    )
    assert json.loads(show("m@1.0.0", "--json"))["long_tails"] == []
    assert json.loads(show("m@1.1.0", "--json"))["long_tails"] == [
        {"split": "train", "since": "1.0.0", "added": 300, "records": 700, "small_shards": 0}
    ]

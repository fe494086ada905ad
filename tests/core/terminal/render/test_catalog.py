"""Lists, histories, manifests and where they come from, whole."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tfrecreg.builtin.look.show_command import print_origin
from tfrecreg.core.build.conclude import Origin
from tfrecreg.core.registry.listing import Listed, LogEntry
from tfrecreg.core.registry.manifest.model import (
    Change,
    Ledger,
    Manifest,
    Parent,
    Provenance,
    RawTotals,
    ReleaseEntry,
    SchemaEntry,
    ShardEntry,
    SourceEntry,
    SplitEntry,
)
from tfrecreg.core.terminal.render.catalog import (
    feature_sizes,
    print_list,
    print_log,
    print_manifest,
)
from tfrecreg.core.values.shards import in_reading_order


def shard(split: str, records: int) -> ShardEntry:
    return ShardEntry(
        path=f"m-{split}",
        bytes=records * 500,
        blake3="",
        sha256="",
        split=split,
        records=records,
        payload_bytes=records * 484,
        stream_blake3="",
        index="",
    )


def split(name: str, records: int) -> SplitEntry:
    return SplitEntry(name=name, records=records, payload_bytes=records * 484, content="")


BUILD = Manifest(
    format_version=1,
    dataset="m",
    content="c" * 64,
    splits=[split("extra", 1), split("test", 20), split("train", 1000), split("validation", 10)],
    shards=[
        shard("extra", 1),
        shard("test", 20),
        shard("train", 500),
        shard("train", 500),
        shard("validation", 10),
    ],
    files=[],
    raw=RawTotals(files=4, stored=200_000, decoded=800_000),
    ledger={
        "train": Ledger(items=1002, written=1000, skipped={"SRC001": 2}),
        "test": Ledger(items=31, written=31),
    },
    features={"image/encoded": 300_000, "image/class/label": 100_000},
    labels={"image/class/label": [f"class {n}" for n in range(14)]},
    source=SourceEntry(
        name="mnist",
        distribution="tfrecreg",
        version="0.1.0",
        options={"encoding": "png", "prefix": ""},
    ),
    schema=SchemaEntry(blake3="", bytes=1),
    compression="gzip",
    codecs={},
    digest="d" * 64,
)
RELEASED = replace(
    BUILD,
    release=ReleaseEntry(
        version="1.1.0",
        build="",
        parent=Parent(version="1.0.0", digest=""),
        change=Change(level="minor", reasons=["10 examples were added", "a split is new"]),
    ),
    provenance=Provenance(
        created="2027-01-31T12:00:00Z",
        by="ada",
        host="h",
        tfrecreg="0.1.0",
        python="3.11",
        note="[/] for the \x1b demo",
    ),
)


def test_a_release_in_a_pipe(pipe) -> None:
    shown = pipe(lambda console: print_manifest(console, "m@1.1.0", "data/m", RELEASED))
    assert (
        shown
        == f"""\
m@1.1.0
  change    minor after 1.0.0: 10 examples were added; a split is new
  released  2027-01-31T12:00:00Z by ada
  note      [/] for the \\x1b demo
  bytes     in data/m
  size      515.5 kB, 1,031 records in 5 shards, gzip
  source    mnist (tfrecreg 0.1.0), encoding=png
  raw       4 files, 200.0 kB; 800.0 kB unpacked; the shards are 2.58 × the raw files, 0.64 × the unpacked data
  items     1,031 written, 2 skipped
  skipped   2 items have no example (SRC001, train)
  labels    image/class/label, 14 of them: {", ".join(f"class {n}" for n in range(12))} …
  content   {"c" * 64}
  manifest  {"d" * 64}

  split       records  shards   payload
  train         1,000       2  484.0 kB
  validation       10       1    4.8 kB
  test             20       1    9.7 kB
  extra             1       1     484 B

  feature                     bytes  of the record bytes
  image/encoded            300.0 kB               58.2 %
  image/class/label        100.0 kB               19.4 %
  (names, framing, other)  115.5 kB               22.4 %
"""  # noqa: E501 - a pipe's lines are as long as they are
    )


def test_remarks_on_the_raw_data_as_a_whole_are_of_no_split(pipe) -> None:
    remarked = {"": Ledger(items=0, written=0, remarks={"SRC025": 2})}
    made = replace(BUILD, ledger={**BUILD.ledger, **remarked})
    shown = pipe(lambda console: print_manifest(console, "m", "data/m", made, brief=True))
    assert (
        """\
  items    1,031 written, 2 skipped
  skipped  2 items have no example (SRC001, train)
  remark   2 annotations refer to unlisted images or categories (SRC025)
"""
        in shown
    )


def test_a_code_of_a_plugin_that_is_gone_is_shown_without_words(pipe) -> None:
    made = replace(BUILD, ledger={"train": Ledger(items=1, written=0, skipped={"ZZZ001": 1})})
    shown = pipe(lambda console: print_manifest(console, "m", "data/m", made, brief=True))
    assert "  skipped  1 × (ZZZ001, train)\n" in shown


def test_a_fresh_build_is_shown_in_brief(pipe) -> None:
    shown = pipe(lambda console: print_manifest(console, "built m", "data/m", BUILD, brief=True))
    assert (
        shown
        == """\
built m
  size     515.5 kB, 1,031 records in 5 shards, gzip
  items    1,031 written, 2 skipped
  skipped  2 items have no example (SRC001, train)

  split       records  shards   payload
  train         1,000       2  484.0 kB
  validation       10       1    4.8 kB
  test             20       1    9.7 kB
  extra             1       1     484 B
"""
    )


def test_facts_of_a_manifest_wrap_in_their_column(terminal) -> None:
    shown = terminal(lambda console: print_manifest(console, "m", None, RELEASED), 48)
    assert (
        """\
  change    minor after 1.0.0: 10 examples were
            added; a split is new
"""
        in shown
    )
    assert "  bytes     not on this machine\n" in shown


def test_what_a_manifest_does_not_know_is_not_made_up(pipe) -> None:
    adopted = replace(
        BUILD,
        source=SourceEntry(name="", distribution="", version=""),
        raw=RawTotals(files=0, stored=0, decoded=0),
        features={},
        labels={},
    )
    shown = pipe(lambda console: print_manifest(console, "m", "data/m", adopted))
    assert "source" not in shown
    assert "feature" not in shown
    assert "  raw       unknown\n" in shown


def test_the_provenance_of_what_was_adopted(pipe) -> None:
    adopted = replace(
        BUILD,
        source=SourceEntry(name="", distribution="", version=""),
        raw=RawTotals(files=0, stored=0, decoded=0),
        schema=SchemaEntry(blake3="e" * 64, bytes=1),
    )
    shown = pipe(lambda console: print_origin(console, Origin("m", adopted)))
    assert (
        shown
        == f"""\
provenance of m
  raw       unknown
  codecs    unknown
  schema    {"e" * 64}
  gate      not judged yet: a build is judged when it is released
  content   {"c" * 64}
  manifest  {"d" * 64}
"""
    )


def test_a_list_of_datasets(pipe) -> None:
    listed = [
        Listed(name="a", state="released", latest="1.10.0", releases=12, records=7, bytes=999),
        Listed(name="built", state="built", latest="", releases=0, records=70_000, bytes=3 * 10**9),
        Listed(name="new", state="configured", latest="", releases=0, records=None, bytes=None),
        Listed(
            name="bad",
            state="broken",
            latest="",
            releases=0,
            records=None,
            bytes=None,
            problem="`data/bad/manifest.json` is no JSON",
        ),
        Listed(name="gone", state="released", latest="", releases=2, records=7, bytes=999),
        Listed(
            name="worse",
            state="broken",
            latest="",
            releases=2,
            records=None,
            bytes=None,
            problem="its yanks are no JSON",
        ),
    ]
    assert (
        pipe(lambda console: print_list(console, listed))
        == """\
dataset  latest        releases  records    size
a        1.10.0              12        7   999 B
built    (built)              0   70,000  3.0 GB
new      (configured)         0
bad      (broken)             0
gone     (yanked)             2        7   999 B
worse    (broken)             2
broken: `data/bad/manifest.json` is no JSON
broken: its yanks are no JSON
"""
    )


def test_an_empty_list_says_how_to_go_on(pipe) -> None:
    shown = pipe(lambda console: print_list(console, []))
    assert shown == "no datasets yet: tfrecreg build NAME --source SOURCE --raw PATH\n"


def test_a_history(pipe, terminal) -> None:
    newer = LogEntry(
        version="1.1.0",
        created="2027-02-01T12:00:00Z",
        by="ada",
        level="minor",
        reasons=("10 examples were added to the split `train`",),
        records=1010,
        bytes=510_000,
        note="",
        parent="1.0.0",
    )
    older = replace(
        newer,
        version="1.0.0",
        level="initial",
        reasons=(),
        records=1,
        bytes=500,
        note="[b]first",
        parent=None,
    )
    assert (
        pipe(lambda console: print_log(console, "m", [newer, older]))
        == """\
m 1.1.0 (minor after 1.0.0): 10 examples were added to the split `train`
  m@1.1.0: 1,010 records, 510.0 kB; 2027-02-01T12:00:00Z by ada
m 1.0.0 (the first): 1 record
  m@1.0.0: 1 record, 500 B; 2027-02-01T12:00:00Z by ada
  “[b]first”
"""
    )
    assert (
        terminal(lambda console: print_log(console, "m", [newer]), 40)
        == """\
m 1.1.0 (minor after 1.0.0): 10 examples
  were added to the split `train`
  m@1.1.0: 1,010 records, 510.0 kB;
    2027-02-01T12:00:00Z by ada
"""
    )


def test_no_history_says_how_to_begin_one(pipe) -> None:
    shown = pipe(lambda console: print_log(console, "m", []))
    assert shown == "m has no release yet: tfrecreg release m --version 1.0.0\n"


@pytest.mark.parametrize(
    ("features", "text"),
    [
        ({}, "none"),
        ({"b": 1, "a": 1}, "a 1 B (50 % of the record bytes), b 1 B (50 %)"),
        (
            {f"f{number}": 10 for number in range(8)},
            "f0 10 B (12 % of the record bytes), "
            + ", ".join(f"f{number} 10 B (12 %)" for number in range(1, 6))
            + ", 2 smaller features 20 B (25 %)",
        ),
    ],
)
def test_the_largest_features_come_first(features: dict[str, int], text: str) -> None:
    assert feature_sizes(features) == text


def test_what_is_beside_the_features_has_its_share() -> None:
    assert feature_sizes({"a": 50}, around=30, other=20) == (
        "a 50 B (50 % of the record bytes), names and framing 30 B (30 %), "
        "other payloads 20 B (20 %)"
    )
    all_other = "other payloads 20 B (100 % of the record bytes)"
    assert feature_sizes({}, other=20) == all_other


def test_splits_are_read_in_the_order_of_their_use() -> None:
    names = ["a", "test", "train", "unlabelled", "validation"]
    assert sorted(names, key=in_reading_order) == ["train", "validation", "test", "a", "unlabelled"]

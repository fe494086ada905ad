"""Builds and releases of a registry: classes, comparisons, findings, what is saved."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from diff_support import SCHEMA, example, put_build, put_release
from tests_support import flip
from view_support import Viewing, serving

import tfrecreg
from tfrecreg.builtin.derived.parents import DerivedOptions
from tfrecreg.core.example.values import bytes_feature, int64_feature
from tfrecreg.core.images.read import PNG
from tfrecreg.core.values.documents import read_toml

pytest.importorskip("duckdb", reason="the extra `query` is not installed")

BEFORE = {
    "train": [{f"a{n}": example(n) for n in range(6)}],
    "test": [{f"t{n}": example(100 + n) for n in range(3)}],
}
AFTER = {
    "train": [
        {
            **{f"a{n}": example(n) for n in range(1, 5)},
            "a5": example(5, label=int64_feature(0)),
            "b0": example(50),
        }
    ],
    "test": BEFORE["test"],
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("registry")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        labels = {"label": ["cat", "dog", "owl"]}
        put_build(folder, BEFORE, labels=labels)
        put_release(folder, "1.0.0")
        put_build(folder, AFTER, labels=labels)
        yield folder


@pytest.fixture(scope="module")
def viewing(root: Path) -> Iterator[Viewing]:
    with serving("d", registry=root) as found:
        found.wait("/api/t/0", "catalog", "ready")
        yield found


def test_the_datasets_of_the_registry_are_listed_and_opened(viewing: Viewing, root: Path) -> None:
    told = viewing.ask("/api/targets")
    (listed,) = told["datasets"]
    assert (listed["name"], listed["versions"], listed["build"]) == ("d", ["1.0.0"], True)
    assert (listed["records"], listed["bytes"]) == (
        sum(each.records for each in tfrecreg.open(root)["d"]["1.0.0"].manifest.splits),
        sum(each.bytes for each in tfrecreg.open(root)["d"]["1.0.0"].manifest.shards),
    )
    assert told["registry"] == str(root)
    opened = viewing.ask("/api/open", name="d@1.0.0")
    assert opened["name"] == "d@1.0.0"
    assert viewing.ask("/api/open", name="d@1.0.0") == opened  # and not once more
    for name in (
        "../d",
        "/etc/passwd",
        str(root / "data/d"),
        "http://127.0.0.1:1/x",
        "d@2.0.0",
        "",
    ):
        viewing.error("/api/open", 404 if name == "d@2.0.0" else 400, name=name)


def test_without_a_target_there_are_the_datasets(root: Path) -> None:
    with serving(registry=root) as viewing:
        told = viewing.ask("/api/targets")
    assert told["targets"] == []
    assert [each["name"] for each in told["datasets"]] == ["d"]


def test_classes_have_names_and_colors(viewing: Viewing) -> None:
    told = viewing.ask("/api/t/0")
    assert [(each["number"], each["name"]) for each in told["classes"]] == [
        (0, "cat"),
        (1, "dog"),
        (2, "owl"),
    ]
    assert len({each["color"] for each in told["classes"]}) == 3
    facets = viewing.ask("/api/t/0/facets")["facets"]
    colors = {each["text"]: each["color"] for each in facets[1]["values"]}
    assert colors == {each["name"]: each["color"] for each in told["classes"]}
    assert viewing.ask("/api/t/0/records", count=1)["records"][0]["key"] == "a1"


def test_two_versions_are_compared(viewing: Viewing) -> None:
    other = viewing.ask("/api/open", name="d@1.0.0")["id"]
    found = viewing.ask("/api/compare", a=other, b=0)
    counts = {name: found[name] for name in ("added", "removed", "changed", "moved", "unchanged")}
    assert counts == {"added": 1, "removed": 1, "changed": 1, "moved": 0, "unchanged": 7}
    assert (found["verdict"], found["version"]) == ("MAJOR", "2.0.0")
    assert found["features"] == [{"name": "label", "change": "changed in 1"}]
    pairs = viewing.ask("/api/compare/records", a=other, b=0, kind="changed")
    (pair,) = pairs["records"]
    assert (pairs["of"], pair["key"], pair["differs"]) == (1, "a5", ["label"])
    assert (pair["a"]["label"], pair["b"]["label"]) == ("owl", "cat")
    (pair,) = viewing.ask("/api/compare/records", a=other, b=0, kind="removed")["records"]
    assert (pair["key"], pair["a"]["record"], pair["b"]) == ("a0", 0, None)
    (pair,) = viewing.ask("/api/compare/records", a=other, b=0, kind="added")["records"]
    assert (pair["key"], pair["a"]) == ("b0", None)
    said = viewing.error("/api/compare/records", 400, a=other, b=0, kind="all")
    assert said.startswith("there is no kind `all`")


def test_what_is_moved_and_relabelled_is_moved_as_in_diff(tmp_path: Path) -> None:
    moved = {"a5": example(5, label=int64_feature(0))}
    put_build(tmp_path, BEFORE)
    put_release(tmp_path, "1.0.0")
    rest = {f"a{n}": example(n) for n in range(4)}
    put_build(
        tmp_path, {"train": [rest], "test": [{**BEFORE["test"][0], "a4": example(4), **moved}]}
    )
    with serving("d@1.0.0", "d", registry=tmp_path) as viewing:
        found = viewing.ask("/api/compare", a=0, b=1)
        assert (found["changed"], found["moved"], found["unchanged"]) == (0, 2, 7)
        assert viewing.ask("/api/compare/records", a=0, b=1, kind="changed")["records"] == []
        pairs = viewing.ask("/api/compare/records", a=0, b=1, kind="moved")["records"]
        assert {each["key"]: each["differs"] for each in pairs} == {"a4": [], "a5": ["label"]}
        chosen = viewing.ask("/api/t/1/select", changed_since="d@1.0.0")["selection"]
        (record,) = viewing.ask("/api/t/1/records", selection=chosen)["records"]
        assert record["key"] == "a5"


def test_pixels_that_begin_like_an_image_are_drawn_as_pixels(tmp_path: Path) -> None:
    schema = SCHEMA + 'feature { name: "raw" type: BYTES annotation { tag: "pixels:2x2x3" } }'
    record = {"raw": bytes_feature(4 * b"\xff\xd8\xff")}
    put_build(tmp_path, {"train": [{"a": record}]}, schema=schema)
    with serving("d", registry=tmp_path) as viewing:
        for path in ("thumb", "image"):
            answer = viewing.client.get(f"/api/t/0/{path}/0/0")
            assert answer.headers["content-type"] == "image/png"
            assert answer.content.startswith(PNG)


def test_folders_are_compared_wherever_they_are(root: Path, tmp_path: Path) -> None:
    """A copy outside of every registry, and the builds of the same name in two of them."""
    copy, other = tmp_path / "copy", tmp_path / "other"
    put_build(other, BEFORE)
    shutil.copytree(other / "data/d", copy)
    targets = [str(copy), str(other / "data/d"), str(root / "data/d")]
    with serving(*targets, registry=root) as found:
        assert [each["name"] for each in found.ask("/api/targets")["targets"]] == [
            *targets[:2],
            "d",
        ]
        assert found.ask("/api/compare", a=0, b=1)["verdict"] == "SAME"
        assert found.ask("/api/compare", a=1, b=2)["changed"] == 1
        assert found.ask("/api/compare", a=2, b=2)["verdict"] == "SAME"
        assert found.ask("/api/open", name="d")["id"] == 2
        for number, word in enumerate([*targets[:2], "d"]):
            commands = found.ask(f"/api/t/{number}")["commands"]
            assert commands["cli"] == f"tfrecreg view {word}"


def test_records_that_changed_since_a_version_are_selected(viewing: Viewing) -> None:
    found = viewing.ask("/api/t/0/select", changed_since="d@1.0.0")
    records = viewing.ask("/api/t/0/records", selection=found["selection"])["records"]
    assert [each["key"] for each in records] == ["a5", "b0"]
    facets = viewing.ask("/api/t/0/facets", selection=found["selection"])["facets"]
    assert {each["text"]: each["count"] for each in facets[0]["values"]} == {"train": 2, "test": 0}
    both = viewing.ask("/api/t/0/select", changed_since="d@1.0.0", where="label_name = 'cat'")
    assert both["count"] == 1
    said = viewing.error("/api/t/0/select", 404, changed_since="d@9.0.0")
    assert "no release `d@9.0.0`" in said


def test_the_latest_version_is_the_one_of_the_moment(tmp_path: Path) -> None:
    put_build(tmp_path, BEFORE)
    put_release(tmp_path, "1.0.0")
    put_build(tmp_path, AFTER)
    with serving("d", registry=tmp_path) as viewing:
        assert viewing.ask("/api/t/0/select", changed_since="d@latest")["count"] == 2
        put_release(tmp_path, "2.0.0")
        assert viewing.ask("/api/t/0/select", changed_since="d@latest")["count"] == 0


def test_a_selection_becomes_a_derived_dataset(viewing: Viewing) -> None:
    where = "key <> 'a\"5' AND label_name = 'cat' -- \U0001f600"
    found = viewing.ask("/api/t/0/select", where=where, split="train")
    assert found["toml"] is True
    text = viewing.client.get(
        "/api/t/0/save", params={"selection": found["selection"], "as": "toml"}
    ).text
    config = read_toml(text, "datasets/new.toml")
    assert config["source"] == "tfrecreg"
    options = config["options"]
    assert DerivedOptions(inputs=tuple(options["inputs"]), where=options["where"])
    again = viewing.ask("/api/t/0/select", where=options["where"])
    assert again["count"] == found["count"]


@pytest.mark.medium
def test_damage_is_found_and_its_records_are_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFRECREG_DISABLE", "statistics")  # which imports TFDV
    put_build(tmp_path, BEFORE)
    shard = tmp_path / "data/d/d-train.tfrecord-00000-of-00001"
    with serving("d", registry=tmp_path) as viewing:
        offset = viewing.ask("/api/t/0/record/0/2")["offset"]
    flip(shard, offset + 12 + 5)
    with serving("d", registry=tmp_path, check=True) as viewing:
        found = viewing.wait("/api/t/0/findings", "", "ready")
        record = viewing.ask("/api/t/0/record/0/2")
        shown = viewing.ask("/api/t/0/records", count=4)["records"]
        chosen = viewing.ask("/api/t/0/select", findings="CRC002")
    card = next(each for each in found["cards"] if each["code"] == "CRC002")
    assert card["records"] == [{"shard": 0, "record": 2}]
    assert [each["code"] for each in record["findings"]] == ["CRC002"]
    assert [each["findings"] for each in shown] == [[], [], ["CRC002"], []]
    assert chosen["count"] == 1


def test_a_missing_shard_is_gone_and_the_others_are_shown(tmp_path: Path) -> None:
    put_build(tmp_path, BEFORE)
    (tmp_path / "data/d/d-train.tfrecord-00000-of-00001").unlink()
    with serving("d", registry=tmp_path, check=True) as viewing:
        told = viewing.ask("/api/t/0")
        assert viewing.ask("/api/t/0/records")["of"] == 3
        cards = viewing.wait("/api/t/0/findings", "", "ready")["cards"]
    (card,) = (each for each in cards if each["code"] == "SHD001")
    assert card["places"][0].startswith("d-train.tfrecord-00000-of-00001 (TensorFlow ")
    states = [(each["state"], each["records"]) for each in told["shards"]]
    assert states == [("gone", 0), ("ok", 3)]


@pytest.mark.medium
def test_a_finding_says_of_how_many_places_it_names_some(tmp_path: Path) -> None:
    with tfrecreg.TFRecordWriter(tmp_path / "a.tfrecord") as writer:
        for number in range(45):
            writer.write({"image/encoded": b"\xff\xd8\xff no JPEG", "n": number})
    with serving(tmp_path / "a.tfrecord", check=True) as viewing:
        cards = viewing.wait("/api/t/0/findings", "", "ready")["cards"]
        card = next(each for each in cards if each["count"] == 45)
        assert (card["named"], len(card["records"])) == (20, 20)
        found = viewing.ask("/api/t/0/select", findings=card["code"])
        assert (found["count"], found["note"]) == (20, "the findings list 20 of 45 places")
        assert viewing.ask("/api/t/0/select")["note"] == ""

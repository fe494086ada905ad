"""The source `tfrecreg` against an independent computation over the records of its parents."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from cases_support import count_cases
from derived_support import NIGHT, STREET, Derived, Rows, pictures

from tfrecreg.core.records.index import read_index
from tfrecreg.core.registry.data import resolve
from tfrecreg.core.registry.manifest import ParentVersion
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.values.errors import RawDataError

LABEL = "image/class/label"


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Derived:
    """The releases `street@1.0.0` and `night@1.0.0`; they share the class `dog`."""
    made = Derived(tmp_path_factory.mktemp("two") / "registry")
    made.parent("street", pictures("s", STREET), labels={LABEL: STREET}, shards=3)
    made.parent("night", pictures("night", NIGHT, 20, 6), labels={LABEL: NIGHT}, compression="gzip")
    return made


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def payloads(rows: Rows) -> dict[tuple[str, str], bytes]:
    return {key: row[""] for key, row in rows.items()}


def test_one_parent_is_the_same_records_in_the_same_splits(two: Derived) -> None:
    build = two.build("same", "street@1.0.0")
    parent = resolve(open_registry(two.folder), "street@1.0.0").manifest
    assert payloads(two.rows("same")) == payloads(two.rows("street"))
    assert build.manifest.content == parent.content
    assert build.manifest.labels == parent.labels
    assert build.manifest.raw.stored == sum(each.bytes for each in parent.shards)
    assert build.manifest.parents == [
        ParentVersion(reference="street@1.0.0", digest=parent.digest, content=parent.content)
    ]
    assert build.schema == (two.folder / "registry/street/1.0.0/schema.pbtxt").read_text()


def test_a_union_has_all_records_and_numbers_by_name(two: Derived) -> None:
    build = two.build("union", "street@1.*", "night@latest")
    names = build.manifest.labels[LABEL]
    assert names == ["cat", "dog", "truck", "fox", "kitten"]
    street, night, rows = two.rows("street"), two.rows("night"), two.rows("union")
    assert rows.keys() == street.keys() | night.keys()
    assert {key: rows[key][""] for key in street} == payloads(street)
    for key, row in night.items():
        changed = rows[key]
        assert (
            names[changed[LABEL][0]] == NIGHT[row[LABEL][0]] == row["image/class/text"][0].decode()
        )
        rest = {name: value for name, value in row.items() if name not in {"", LABEL}}
        assert {name: changed[name] for name in rest} == rest
    assert [each.reference for each in build.manifest.parents] == ["street@1.0.0", "night@1.0.0"]


def test_where_selects_as_a_program_does(two: Derived) -> None:
    pytest.importorskip("duckdb", reason="the extra `query` is not installed")
    where = "label IN ('cat', 'dog') AND width > 180"
    two.build("wide", "street@1.0.0", "night@1.0.0", where=where)
    both = two.rows("street") | two.rows("night")
    wanted = {
        key
        for key, row in both.items()
        if row["image/class/text"][0] in (b"cat", b"dog") and row["width"][0] > 180
    }
    assert 0 < len(wanted) < len(both)
    assert two.rows("wide").keys() == wanted


def test_diff_of_parent_and_child_says_what_where_says(two: Derived) -> None:
    pytest.importorskip("duckdb", reason="the extra `query` is not installed")
    two.build("narrow", "street@1.0.0", where="width < 150")
    change = two.registry.find("street@1.0.0").diff("narrow", progress=False)
    street = two.rows("street")
    gone = {key for key, row in street.items() if row["width"][0] >= 150}
    assert dict(change.totals)["removed"] == len(gone)
    assert {kind for kind, number in change.totals.items() if number} == {"removed"}
    assert change.shards.kept == 0
    shown = {(each.split, each.key) for each in change.examples["removed"]}
    assert shown
    assert shown <= gone


def test_classes_are_renamed_merged_and_left_out(two: Derived) -> None:
    classes = ["kitten=cat", "truck=", "dog=hound"]
    build = two.build("pets", "street@1.0.0", "night@1.0.0", classes=classes)
    assert build.manifest.labels[LABEL] == ["cat", "hound", "fox"]
    both, rows = two.rows("street") | two.rows("night"), two.rows("pets")
    new = {b"kitten": b"cat", b"dog": b"hound"}
    trucks = {key for key, row in both.items() if row["image/class/text"][0] == b"truck"}
    assert rows.keys() == both.keys() - trucks
    for key, row in rows.items():
        text = both[key]["image/class/text"][0]
        assert row["image/class/text"][0] == new.get(text, text)
        assert ["cat", "hound", "fox"][row[LABEL][0]].encode() == row["image/class/text"][0]
        assert row["raw/data"] == both[key]["raw/data"]
    left_out = sum(each.remarks.get("SRC015", 0) for each in build.manifest.ledger.values())
    assert left_out == len(trucks)
    lines = map(json.loads, two.files("pets")["ledger.jsonl"].splitlines())
    assert count_cases(lines) == {"SRC015": left_out}
    assert two.registry.find("pets").check(progress=False).status == "pass"


def test_a_sample_is_by_the_hashes_of_keys(two: Derived) -> None:
    two.build("some", "street@1.0.0", sample="25%")

    def place(key: str) -> int:
        digest = hashlib.sha256(b"tfrecreg derived sample v1\0" + key.encode()).digest()
        return int.from_bytes(digest[:8], "big")

    wanted = {key for key in two.rows("street") if place(key[1]) < (1 << 64) // 4}
    assert 0 < len(wanted) < 30
    assert two.rows("some").keys() == wanted


def test_a_limit_is_by_class_and_split_and_by_the_hashes_of_keys(two: Derived) -> None:
    two.build("few", "street@1.0.0", limit=3)
    wanted: set[tuple[str, str]] = set()
    full: Counter[Any] = Counter()
    street = two.rows("street")

    def place(key: tuple[str, str]) -> bytes:
        return hashlib.sha256(b"tfrecreg derived limit v1\0" + key[1].encode()).digest()[:8]

    for key in sorted(street, key=place):
        slot = key[0], street[key][LABEL]
        if full[slot] < 3:
            full[slot] += 1
            wanted.add(key)
    assert set(full.values()) == {3}
    assert two.rows("few").keys() == wanted


def test_splits_and_groups_are_those_of_every_source(two: Derived) -> None:
    two.build("dealt", "street@1.0.0", split=["train=0.5", "val=0.5"], group="s0?([0-9])")
    groups: dict[str, set[str]] = {}
    street = two.rows("street")
    for split, key in two.rows("dealt"):
        if (split, key) not in street or split != "test":
            groups.setdefault(key[:3], set()).add(split)
    assert {len(splits) for splits in groups.values()} == {1}
    assert set.union(*groups.values()) == {"train", "validation"}


def test_features_are_kept_left_out_and_renamed(two: Derived) -> None:
    build = two.build(
        "slim", "street@1.0.0", features=["name", "image/class/*", "width=image/width"]
    )
    assert set(build.manifest.features) == {"name", LABEL, "image/class/text", "image/width"}
    build = two.build("thin", "street@1.0.0", features=["raw/*=", f"{LABEL}=class"])
    assert set(build.manifest.features) == {"name", "class", "image/class/text", "width"}
    assert build.manifest.labels == {"class": list(STREET)}
    street = two.rows("street")
    for key, row in two.rows("thin").items():
        assert row["class"] == street[key][LABEL]
    assert two.registry.find("thin").check(progress=False).status == "pass"


def test_keys_that_clash_are_refused_or_prefixed(tmp_path: Path) -> None:
    made = Derived(tmp_path / "registry")
    made.parent("one", pictures("x", STREET, 5, 2), labels={LABEL: STREET})
    made.parent("two", pictures("x", STREET, 5, 2), labels={LABEL: STREET})
    with pytest.raises(RawDataError, match=r"`one@1\.0\.0` and `two@1\.0\.0` both have the key"):
        made.build("both", "one@1.0.0", "two@1.0.0")
    build = made.build("both", "one@1.0.0", "two@1.0.0", prefix=True)
    assert sum(each.records for each in build.manifest.splits) == 14
    index = made.folder / "data/both/index"
    keys = chain.from_iterable(read_index(path.read_bytes(), "").keys() for path in index.iterdir())
    assert Counter(key.split("/")[0] for key in keys) == {"one": 7, "two": 7}

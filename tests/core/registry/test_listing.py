"""Listing a registry, and the history of a dataset."""

from __future__ import annotations

from pathlib import Path

import pytest
from registry_support import empty_registry, put_build, put_release, write

from tfrecreg.core.registry.listing import list_datasets, log
from tfrecreg.core.registry.manifest import ShardEntry, SplitEntry
from tfrecreg.core.registry.registry import open_registry


def sized(name: str, records: int) -> dict[str, object]:
    """Changes to a manifest that give it records and bytes."""
    shard = ShardEntry(
        path=f"{name}-train.tfrecord-00000-of-00001",
        bytes=records * 100,
        blake3="",
        sha256="",
        split="train",
        records=records,
        payload_bytes=records * 84,
        stream_blake3="",
        index="",
    )
    split = SplitEntry(name="train", records=records, payload_bytes=records * 84, content="")
    return {"shards": [shard], "splits": [split]}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Four datasets, one in each state; of the broken one the manifest is cut."""
    root = tmp_path / "root"
    empty_registry(root, zoo='source = "mnist"\n')
    put_build(root, "built", **sized("built", 3))
    for version, records in (("1.0.0", 5), ("1.10.0", 7), ("1.9.0", 6)):
        put_release(root, put_build(root, "released", **sized("released", records)), version)
    put_build(root, "broken")
    write(root / "data/broken/manifest.json", '{"cut')
    return root


def test_every_dataset_is_listed_with_its_state_and_its_newest_release(root: Path) -> None:
    found = {each.name: each for each in list_datasets(open_registry(root))}
    assert list(found) == ["broken", "built", "released", "zoo"]
    built, released, zoo = found["built"], found["released"], found["zoo"]
    assert (built.state, built.latest, built.releases) == ("built", "", 0)
    assert (built.records, built.bytes) == (3, 300)
    assert (released.state, released.latest, released.releases) == ("released", "1.10.0", 3)
    assert (released.records, released.bytes) == (7, 700)
    assert (zoo.state, zoo.records, zoo.bytes) == ("configured", None, None)


def test_a_broken_configuration_is_listed_as_such_and_hides_nobody(root: Path) -> None:
    write(root / "datasets/released.toml", 'sorce = "mnist"\n')
    write(root / "datasets/typo.toml", 'sorce = "mnist"\n')
    found = {each.name: each for each in list_datasets(open_registry(root))}
    assert list(found) == ["broken", "built", "released", "typo", "zoo"]
    assert [found[name].state for name in ("built", "zoo")] == ["built", "configured"]
    assert (found["typo"].state, found["typo"].latest) == ("broken", "")
    assert (found["released"].state, found["released"].latest) == ("broken", "1.10.0")
    for name in ("typo", "released"):
        assert found[name].problem == (
            f"`datasets/{name}.toml`: `sorce` is not known; did you mean `source`?"
        )


def test_a_broken_manifest_is_listed_as_such_and_hides_nobody(root: Path) -> None:
    broken = list_datasets(open_registry(root))[0]
    assert (broken.name, broken.state) == ("broken", "broken")
    assert (broken.records, broken.bytes) == (None, None)
    assert "`data/broken/manifest.json` is not a manifest: Unterminated string" in broken.problem


@pytest.mark.parametrize("damage", ["cut", "gone", "newer"])
def test_a_broken_newest_release_is_listed_with_its_number(root: Path, damage: str) -> None:
    path = root / "registry/released/1.10.0/manifest.json"
    if damage == "gone":
        path.unlink()
    else:
        path.write_text("{" if damage == "cut" else '{"format_version": 9}')
    found = {each.name: each for each in list_datasets(open_registry(root))}
    assert len(found) == 4
    assert (found["released"].state, found["released"].latest) == ("broken", "1.10.0")
    assert found["released"].releases == 3
    assert "1.10.0/manifest.json" in found["released"].problem


def test_the_log_has_the_newest_release_first(root: Path) -> None:
    entries = log(open_registry(root), "released")
    assert [(each.version, each.records, each.bytes) for each in entries] == [
        ("1.10.0", 7, 700),
        ("1.9.0", 6, 600),
        ("1.0.0", 5, 500),
    ]
    assert entries[0].level == "initial"
    assert (entries[0].created, entries[0].by, entries[0].note) == ("", "", "")

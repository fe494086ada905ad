"""Derived datasets over time: rebuilt to the byte, grown, damaged, yanked, repaired."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from check_support import framed
from derived_support import NIGHT, STREET, Derived, pictures

from tfrecreg.builtin.derived.parents import Ancestor
from tfrecreg.builtin.dvc.pipeline import stages_of
from tfrecreg.cli.main import main
from tfrecreg.core.example.model import encode
from tfrecreg.core.example.values import bytes_feature, int64_feature
from tfrecreg.core.records.index import Index
from tfrecreg.core.registry.manifest import ShardEntry
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.values.errors import NotHereError, RawDataError, RefusedError

LABEL = "image/class/label"


@pytest.fixture
def made(tmp_path: Path) -> Derived:
    found = Derived(tmp_path / "registry")
    rows = pictures("s", STREET, 60, 6)
    found.parent("street", rows, labels={LABEL: STREET}, records_per_shard=12)
    return found


def test_the_same_bytes_come_out_of_a_rebuild_by_any_number_of_jobs(made: Derived) -> None:
    options: dict[str, Any] = {"sample": "60%", "classes": ["truck="]}
    made.build("child", "street@1.*", **options)
    files = made.files("child")
    shutil.rmtree(made.folder / "data/child")
    made.build("child", "street@1.*", settings={"jobs": 2, "anew": True}, **options)
    assert made.files("child") == files


def test_growth_of_a_parent_rewrites_only_what_it_touches(made: Derived) -> None:
    settings = {"records_per_shard": 6}
    made.build("child", "street@1.*", sample="70%", settings=settings)
    made.registry["child"].release("1.0.0", progress=False)
    before = made.files("child")
    rows = pictures("s", STREET, 70, 6)  # ten more
    made.parent("street", rows, "1.1.0", labels={LABEL: STREET})
    build = made.build("child", "street@1.*", sample="70%")
    assert [each.reference for each in build.manifest.parents] == ["street@1.1.0"]
    after = made.files("child")
    old, new = (
        {data for name, data in files.items() if name.endswith(tuple("0123456789"))}
        for files in (before, after)
    )
    assert old < new  # every shard is there as it was
    grown = made.rows("child")
    assert 0 < len(grown) < 76


def test_one_changed_record_of_a_parent_rewrites_one_shard(made: Derived) -> None:
    made.build("child", "street@1.*", settings={"records_per_shard": 6})
    made.registry["child"].release("1.0.0", progress=False)
    before = made.files("child")
    rows = pictures("s", STREET, 60, 6)
    rows["train"][5]["width"] = 9
    made.parent("street", rows, "2.0.0", labels={LABEL: STREET})
    made.build("child", "street@2.0.0")
    after = made.files("child")
    changed = [
        name
        for name in before.keys() & after.keys()
        if ".tfrecord-" in name and not name.endswith(".index") and before[name] != after[name]
    ]
    assert len(changed) == 1
    assert before.keys() == after.keys()


def test_damage_of_a_parent_is_refused(made: Derived) -> None:
    (shard,) = sorted((made.folder / "data/street").glob("*-test.tfrecord-*"))
    data = bytearray(shard.read_bytes())
    data[-20] ^= 1
    shard.write_bytes(bytes(data))
    with pytest.raises(RawDataError, match=r"of the parent `street@1\.0\.0` is damaged: record 5"):
        made.build("child", "street@1.0.0")
    shard.write_bytes(bytes(data[:-1]))
    with pytest.raises(RawDataError, match=r"is damaged: it should have .* bytes, found"):
        made.build("child", "street@1.0.0")
    shard.unlink()
    with pytest.raises(RawDataError, match=r"is damaged: it is missing") as caught:
        made.build("child", "street@1.0.0")
    assert caught.value.hint == "tfrecreg repair street@1.0.0"
    assert not (made.folder / "data/child").exists()


def test_another_index_of_a_parent_is_refused(made: Derived) -> None:
    for index in (made.folder / "data/street/index").iterdir():
        index.write_bytes(index.read_bytes()[:-1])
    with pytest.raises(RawDataError, match=r"an index of the parent `street@1\.0\.0` is damaged"):
        made.build("child", "street@1.0.0")


def test_records_of_a_gzip_parent_are_verified_too(tmp_path: Path) -> None:
    made = Derived(tmp_path / "registry")
    made.parent("night", pictures("n", NIGHT), labels={LABEL: NIGHT}, compression="gzip")
    made.build("child", "night@1.0.0")
    assert made.rows("child") == made.rows("night")
    (shard,) = sorted((made.folder / "data/night").glob("*-test.tfrecord-*"))
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 1
    shard.write_bytes(bytes(data))
    with pytest.raises(RawDataError, match=r"of the parent `night@1\.0\.0` is damaged: record"):
        made.build("child", "night@1.0.0", settings={"anew": True})


def test_a_build_reads_the_index_of_a_gzip_shard_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Derived(tmp_path / "registry")
    settings = {"compression": "gzip", "records_per_shard": 4}
    made.parent("night", pictures("n", NIGHT), labels={LABEL: NIGHT}, **settings)
    seen, read = Counter[str](), Ancestor.index

    def index(parent: Ancestor, shard: ShardEntry) -> Index:
        seen[shard.path] += 1
        return read(parent, shard)

    monkeypatch.setattr(Ancestor, "index", index)
    made.build("child", "night@1.0.0", prefix=True)  # other keys have another order
    assert set(seen.values()) == {2}  # the listing reads it as well


def test_a_parent_that_is_not_here_is_one_line_with_a_hint(made: Derived) -> None:
    shutil.rmtree(made.folder / "data/street")
    shutil.rmtree(made.folder / "versions", ignore_errors=True)
    with pytest.raises(NotHereError, match=r"`street@1\.0\.0`") as caught:
        made.build("child", "street@1.0.0")
    assert caught.value.hint


def test_a_yanked_parent_is_noted_found_and_shown(made: Derived, capsys: Any) -> None:
    made.build("child", "street@1.0.0")
    made.registry["child"].release("1.0.0", progress=False)
    made.build("fresh", "street@1.0.0")
    made.registry.find("street@1.0.0").yank("labels of dogs are wrong", progress=False)
    for name in ("child", "child@1.0.0", "fresh"):
        report = made.registry.find(name).check(progress=False)
        (finding,) = [each for each in report.findings if each.code == "SRC100"]
        assert "its parent street@1.0.0 was yanked on" in finding.message
    report = made.registry.audit("child")
    assert [each.code for each in report.findings] == ["SRC100"]
    assert main(["-C", str(made.folder), "build", "child"]) == 0
    assert "the parent `street@1.0.0` was yanked on" in capsys.readouterr().err
    assert main(["-C", str(made.folder), "log", "child"]) == 0
    assert "from street@1.0.0" in capsys.readouterr().out


def test_a_parent_that_is_another_now_is_found(made: Derived) -> None:
    made.build("child", "street@1.0.0")
    made.registry["child"].release("1.0.0", progress=False)
    rows = pictures("s", STREET, 61, 6)
    made.parent("street", rows, "1.1.0", labels={LABEL: STREET})
    shutil.rmtree(made.folder / "registry/street/1.0.0")
    report = made.registry.audit("child")
    assert [each.message for each in report.findings if each.code == "SRC101"] == [
        "its parent street@1.0.0 is missing"
    ]


def test_repair_reads_the_versions_that_the_parents_were_then(made: Derived) -> None:
    made.build("child", "street@1.*")
    made.registry["child"].release("1.0.0", progress=False)
    rows = pictures("s", STREET, 70, 6)
    made.parent("street", rows, "1.1.0", labels={LABEL: STREET})
    files = made.files("child")
    shard = next(iter(sorted((made.folder / "data/child").glob("*-train.tfrecord-*"))))
    shard.unlink()
    made.registry.find("child@1.0.0").repair(progress=False)
    assert made.files("child") == files


def test_records_of_adopted_shards_are_written_in_canonical_form(tmp_path: Path) -> None:
    made = Derived(tmp_path / "registry")
    folder = tmp_path / "others"
    folder.mkdir()
    ordered = encode({"a": int64_feature(1), "name": bytes_feature("first")})
    (head, one, two) = ordered[:2], *_entries(ordered)
    strange = encode({"name": bytes_feature("second")}) + b"\x12\x01x"  # a field 2 of an Example
    (folder / "o-train.tfrecord-00000-of-00001").write_bytes(framed(head + two + one, strange))
    made.registry["odd"].adopt(folder, progress=False)
    with pytest.raises(
        RefusedError, match=r"SRC110: 1\).* it has fields that `tf.train.Example` does not have"
    ):
        made.build("child", "odd")
    build = made.build("child", "odd", settings={"max_skipped": 1})
    assert build.manifest.ledger["train"].skipped == {"SRC110": 1}
    assert [row[""] for row in made.rows("child").values()] == [ordered]


def _entries(payload: bytes) -> tuple[bytes, bytes]:
    """The two entries of the map of features, each shorter than 128 bytes."""
    first = 2 + payload[3] + 2
    return payload[2:first], payload[first:]


def test_the_stage_of_a_pipeline_depends_on_the_parents(made: Derived) -> None:
    made.build("child", "street@1.*")
    made.build("other", "street")
    registry = open_registry(made.folder)
    assert stages_of(registry, "child")["build-child"]["deps"][0] == "registry/street"
    assert stages_of(registry, "other")["build-other"]["deps"][0] == "data/street"


def test_what_is_recorded_names_the_parents(made: Derived, capsys: Any) -> None:
    made.build("child", "street@1.0.0")
    content = made.registry.find("street@1.0.0").manifest.content
    assert main(["-C", str(made.folder), "show", "child"]) == 0
    assert "parents   street@1.0.0" in capsys.readouterr().out
    assert main(["-C", str(made.folder), "show", "child", "--provenance"]) == 0
    assert f"street@1.0.0, content {content}" in " ".join(capsys.readouterr().out.split())

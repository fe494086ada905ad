"""Parts in any order, on any number of machines, end in the build that one command makes."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from image_support import png
from python_data_support import Notes
from receipts_support import item_keys
from tests_support import tree

from tfrecreg.engines.local import LocalEngine
from tfrecreg.errors import RawDataError, RefusedError, UsageError
from tfrecreg.example.decode import decode
from tfrecreg.example.encode import encode
from tfrecreg.example.wire import read_varint, varint
from tfrecreg.manifest.model import FileEntry, ShardEntry
from tfrecreg.operations.adopt.request import AdoptRequest
from tfrecreg.operations.adopt.run import adopt
from tfrecreg.operations.builds.data import build
from tfrecreg.operations.builds.parts.collect import CollectRequest, collect_parts
from tfrecreg.operations.builds.parts.one_part import PlanPart, deal_shards, run_part
from tfrecreg.operations.builds.parts.plan_files import PlanFolder
from tfrecreg.operations.builds.parts.prepare_plan import plan_to
from tfrecreg.operations.builds.plan import PlannedShard
from tfrecreg.operations.builds.settings import BuildRequest
from tfrecreg.operations.builds.shard import MadeShard
from tfrecreg.operations.builds.sink import StageSink
from tfrecreg.operations.init import init
from tfrecreg.operations.release import ReleaseRequest, release
from tfrecreg.records.access import Records
from tfrecreg.records.writer import ShardWriter, hashed_write
from tfrecreg.registry.registry import open_registry
from tfrecreg.shards import ShardPolicy
from tfrecreg.sources.interface import Skipped
from tfrecreg.storage.local import LocalStorage


def whole(site) -> dict[str, bytes]:
    return tree(site.folder / "whole/data")


@pytest.mark.parametrize("order", [(1, 2, 3, 4), (4, 2, 1, 3)])
def test_parts_in_any_order_give_the_build_of_one_command(site, order) -> None:
    for number in order:
        site.part(number, 4)
    done = site.collect(parts_only=True)
    assert (done.from_parts, done.made_here) == (6, ())
    assert tree(site.data) == whole(site)
    config = site.folder / "registry/datasets/digits.toml"
    assert 'source = "mnist"' in config.read_text()


def test_missing_shards_are_made_by_the_command_that_publishes(site) -> None:
    site.part(2, 2)
    done = site.collect()
    assert done.from_parts == 3
    assert len(done.made_here) == 3
    assert tree(site.data) == whole(site)


def test_without_parts_it_is_a_build(site) -> None:
    assert site.collect().from_parts == 0
    assert tree(site.data) == whole(site)


def test_the_plan_leaves_the_registry_as_it_is(site) -> None:
    assert not (site.folder / "registry/schemas/digits.pbtxt").exists()
    assert not (site.folder / "registry/data/digits").exists()


def test_equal_data_give_equal_plans(site) -> None:
    first = site.plan.rename(site.folder / "first")
    site.write_plan()
    again = tree(site.plan, ignore=("plan.json",))
    assert again == tree(first, ignore=("plan.json",))
    digests = {PlanFolder.open(str(each)).document.digest for each in (first, site.plan)}
    assert len(digests) == 1


@pytest.mark.parametrize("of", [1, 2, 3, 5, 6, 9])
def test_every_shard_belongs_to_one_part(site, of: int) -> None:
    shards = PlanFolder.open(str(site.plan)).document.shards
    dealt = [
        shard.path
        for number in range(1, of + 1)
        for shard in deal_shards(shards, PlanPart(number, of))
    ]
    assert sorted(dealt) == [shard.path for shard in shards]


def test_the_number_of_parts_may_change(site) -> None:
    site.part(1, 2)
    finished = sum(site.part(number, 5).finished_before for number in range(1, 6))
    assert finished == 3
    site.collect(parts_only=True)
    assert tree(site.data) == whole(site)


def test_a_part_without_shards_has_nothing_to_do(site) -> None:
    assert site.part(8, 9).shards == ()


def test_a_finished_part_is_not_made_again(site) -> None:
    site.part(1, 2)
    before = {path: path.stat().st_ino for path in (site.plan / "build").rglob("*")}
    again = site.part(1, 2)
    assert again.finished_before == len(again.shards) == 3
    assert {path: path.stat().st_ino for path in (site.plan / "build").rglob("*")} == before


@pytest.mark.parametrize("where", ["build", "receipts"])
def test_a_part_makes_again_what_was_damaged(site, where: str) -> None:
    site.part(1, 1)
    (path,) = (site.plan / where).glob("digits-test*-00001-of-*")
    path.write_bytes(path.read_bytes()[:-2])
    again = site.part(1, 1)
    assert again.finished_before == 5
    site.collect(parts_only=True)
    assert tree(site.data) == whole(site)


def same_part(plan: str, times: int) -> None:
    for _ in range(times):
        run_part(plan, PlanPart(1, 1))
        for receipt in Path(plan, "receipts").glob("digits-*"):
            receipt.unlink(missing_ok=True)
    run_part(plan, PlanPart(1, 1))


def test_the_same_part_at_the_same_time_is_harmless(site) -> None:
    """Both write every shard, again and again, and read what the other one writes."""
    start = multiprocessing.get_context("fork")
    both = [start.Process(target=same_part, args=(str(site.plan), 8)) for _ in range(2)]
    for each in both:
        each.start()
    for each in both:
        each.join(60)
    assert [each.exitcode for each in both] == [0, 0]
    site.part(1, 1)
    site.collect(parts_only=True)
    assert tree(site.data) == whole(site)


def test_shards_in_segments_have_the_same_bytes(site, monkeypatch) -> None:
    class Segmenting(LocalEngine):
        def __init__(self) -> None:
            super().__init__(1)
            self.jobs = 8

        def run(self, function, tasks):
            yield from LocalEngine(1).run(function, tasks)

    monkeypatch.setattr("tfrecreg.operations.builds.make.WORTH_SECONDS", 0)
    site.part(1, 1, engine=Segmenting())
    site.collect(parts_only=True)
    assert tree(site.data) == whole(site)


def test_raw_data_may_be_a_copy_elsewhere(site) -> None:
    copy = site.folder / "copy"
    shutil.copytree(site.raw, copy, copy_function=shutil.copyfile)  # with other times
    shutil.rmtree(site.raw)
    with pytest.raises(UsageError, match="are not on this machine"):
        site.part(1, 1)
    site.part(1, 1, raw=str(copy))
    site.collect(parts_only=True)  # without raw data
    assert tree(site.data) == whole(site)
    site.collect(raw=str(copy), verify="100%")
    release(site.registry, ReleaseRequest(name="digits", version="1.0.0"))


@pytest.mark.parametrize("work", ["part", "collect"])
def test_raw_data_that_changed_since_the_plan_are_refused(site, work: str) -> None:
    file = site.raw / "t10k-labels-idx1-ubyte.gz"
    os.utime(file, (1, 1))
    with pytest.raises(RawDataError, match=r"t10k-labels.*was written again"):
        site.part(1, 1) if work == "part" else site.collect()
    assert not (site.data / "digits").exists()
    extra = file.read_bytes() + b"\0"
    file.write_bytes(extra)
    with pytest.raises(RawDataError, match=r"has \d+ bytes, expected \d+"):
        site.part(1, 1, raw=str(site.raw))


def test_raw_files_of_a_plan_are_compared_and_added_ones_are_no_part_of_it(tmp_path) -> None:
    raw = tmp_path / "raw/cat"
    raw.mkdir(parents=True)
    for number in range(4):
        (raw / f"{number}.png").write_bytes(png(8, 8, seed=number))
    init(tmp_path / "registry", with_dvc=False)
    registry = open_registry(tmp_path / "registry")
    plan = tmp_path / "plan"
    policy = ShardPolicy(shards=2)
    request = BuildRequest(
        name="pets", source="imagefolder", raw=str(tmp_path / "raw"), policy=policy
    )
    plan_to(registry, request, plan)
    (raw / "more.png").write_bytes(png(8, 8, seed=9))
    first, second = PlanPart(1, 2), PlanPart(2, 2)
    made = run_part(str(plan), first)
    assert made.records == 2
    mine = item_keys(plan, made.shards[0])
    key = min({f"cat/{number}.png" for number in range(4)} - {*mine})
    other = tmp_path / "raw" / key
    kept, status = other.read_bytes(), other.stat()
    other.unlink()
    run_part(str(plan), first)  # it is no file of this part
    for work in (
        lambda: run_part(str(plan), second),
        lambda: collect_parts(registry, CollectRequest(plan=str(plan))),
    ):
        with pytest.raises(RawDataError, match=f"`{key}` is missing"):
            work()
    other.write_bytes(kept)
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    run_part(str(plan), second)
    done = collect_parts(registry, CollectRequest(plan=str(plan), parts_only=True))
    assert done.built.manifest.splits[0].records == 4


class Interrupted(Notes):
    """Does something once, when the raw data were looked at."""

    def __init__(self, deed: Callable[[], None]) -> None:
        super().__init__()
        self.deeds, self.what = [deed], ""

    def start(self, what: str, total: int, unit: str = "records") -> None:
        self.what = what

    def stop(self) -> None:
        if self.deeds and self.what == "checking whether raw data changed":
            self.deeds.pop()()


def test_a_part_that_ends_after_the_raw_data_were_compared_is_not_published(site) -> None:
    """Its last shard may be of raw data that changed since the comparison."""
    site.part(1, 2)
    before = {path.name for path in (site.plan / "receipts").iterdir()}
    site.part(2, 2)
    late = [path for path in (site.plan / "receipts").iterdir() if path.name not in before]
    held = {path: path.read_bytes() for path in late}
    for path in late:
        path.unlink()

    def end() -> None:
        os.utime(site.raw / "t10k-labels-idx1-ubyte.gz", (1, 1))
        for path, data in held.items():
            path.write_bytes(data)

    progress = Interrupted(end)
    request = CollectRequest(plan=str(site.plan), parts_only=True)
    with pytest.raises(UsageError, match="3 of 6 shards are missing, of the part `2/2`"):
        collect_parts(site.registry, request, progress=progress)
    assert not progress.deeds
    assert not (site.data / "digits").exists()


def test_a_schema_that_changed_since_the_plan_is_refused(site) -> None:
    site.part(1, 1)
    schema = site.folder / "registry/schemas/digits.pbtxt"
    schema.parent.mkdir(exist_ok=True)
    schema.write_text((site.plan / "schema.pbtxt").read_text() + "# reviewed\n")
    with pytest.raises(UsageError, match="is not the schema of the plan any more"):
        site.collect()


def test_findings_of_parts_name_the_keys(site) -> None:
    """The indexes are made from the bytes that have the findings."""
    text = (site.plan / "schema.pbtxt").read_text()
    narrow = text.replace("max: 255", "max: 8")
    assert narrow != text
    (site.folder / "registry/schemas").mkdir(exist_ok=True)
    (site.folder / "registry/schemas/digits.pbtxt").write_text(narrow)
    shutil.rmtree(site.plan)
    site.write_plan()
    site.part(1, 1)
    refused = []
    for work in (site.collect, lambda: build(site.registry, site.request())):
        with pytest.raises(RefusedError, match="the new build does not pass its own check") as it:
            work()
        refused.append(it.value)
    assert refused[0].message == refused[1].message
    assert refused[0].findings == refused[1].findings
    assert all(place.key for each in refused[0].findings for place in each.locations)
    assert not (site.data / "digits").exists()


def test_a_plan_with_a_base_keeps_its_shards(site) -> None:
    site.collect()
    release(site.registry, ReleaseRequest(name="digits", version="1.0.0"))
    shutil.copytree(site.folder / "registry", site.folder / "grown")
    request = {"policy": None, "compression": None}
    shutil.rmtree(site.plan)
    site.write_plan(**request)
    with pytest.raises(UsageError, match=r"grows from `digits@1.0.0`, and there is no registry"):
        site.part(1, 2)
    site.part(1, 2, registry=lambda: site.registry)
    site.part(2, 2, registry=lambda: site.registry)
    receipts = [json.loads(each.read_bytes()) for each in (site.plan / "receipts").iterdir()]
    assert [each["kept"] for each in receipts] == [True] * 6
    done = site.collect(parts_only=True)
    assert done.built.growth is not None
    assert done.built.growth.kept == 6
    again = build(open_registry(site.folder / "grown"), BuildRequest(name="digits"))
    assert done.built.manifest.digest == again.manifest.digest


def backwards(payload: bytes) -> bytes:
    """An Example with its features in another order."""
    entries = b""
    for name, feature in sorted(decode(payload).items(), reverse=True):
        alone = encode({name: feature})
        entries += alone[-read_varint(alone, 1, len(alone))[0] :]
    return b"\n" + varint(len(entries)) + entries


def test_shards_of_an_adopted_base_keep_its_indexes(tmp_path) -> None:
    """Its records are not in canonical form: their digests are not those of their bytes."""
    raw = tmp_path / "raw"
    raw.mkdir()
    for number in range(6):
        (raw / f"{number}.png").write_bytes(png(8, 8, seed=number))
    labels = "".join(f"{number}.png,{'cat' if number % 2 else 'dog'}\n" for number in range(6))
    (raw / "labels.csv").write_text(f"file,label\n{labels}")
    init(tmp_path / "first", with_dvc=False)
    request = BuildRequest(
        name="pets",
        source="imagefolder",
        raw=str(raw),
        options={"label_file": "labels.csv"},
        policy=ShardPolicy(shards=2),
    )
    build(open_registry(tmp_path / "first"), request)
    for path in sorted((tmp_path / "first/data/pets").glob("*-of-00002")):
        with Records(str(path)) as records:
            payloads = [bytes(each) for each in records]
        with ShardWriter(LocalStorage(tmp_path / "foreign"), path.name) as writer:
            for payload in payloads:
                writer.write(backwards(payload), digest=None, key="")
    init(tmp_path / "registry", with_dvc=False)
    registry = open_registry(tmp_path / "registry")
    foreign = (str(tmp_path / "foreign"),)
    adopt(registry, AdoptRequest(name="pets", paths=foreign, key="image/filename"))
    release(registry, ReleaseRequest(name="pets", version="1.0.0"))
    shutil.copytree(tmp_path / "registry", tmp_path / "one")
    grown = replace(request, policy=None)
    whole = build(open_registry(tmp_path / "one"), grown)
    assert whole.growth is not None
    assert whole.growth.kept == 2
    plan = tmp_path / "plan"
    plan_to(registry, grown, plan)
    run_part(str(plan), PlanPart(1, 1), registry=lambda: registry)
    done = collect_parts(registry, CollectRequest(plan=str(plan), parts_only=True))
    assert done.built.manifest == whole.manifest


def test_gzip_shards_of_parts_are_those_of_a_build(site) -> None:
    shutil.rmtree(site.plan)
    site.write_plan(compression="gzip")
    build(open_registry(site.folder / "whole"), site.request(compression="gzip"))
    site.part(1, 2)
    site.part(2, 2)
    site.collect(parts_only=True, verify="1")
    assert tree(site.data) == whole(site)


def test_names_that_are_not_utf8_and_skipped_items_reach_the_ledger(tmp_path) -> None:
    raw = tmp_path / "raw"
    for number, name in enumerate([b"a.png", b"\xff.png", b"empty.png", b"\xfe-empty.png"]):
        (raw / "cat").mkdir(parents=True, exist_ok=True)
        data = b"" if b"empty" in name else png(8, 8, seed=number)
        (raw / "cat" / os.fsdecode(name)).write_bytes(data)
    request = BuildRequest(
        name="pets", source="imagefolder", raw=str(raw), max_skipped=3, policy=ShardPolicy(shards=1)
    )
    for name in ("one", "parts"):
        init(tmp_path / name, with_dvc=False)
    build(open_registry(tmp_path / "one"), request)
    plan = tmp_path / "plan"
    plan_to(open_registry(tmp_path / "parts"), request, plan)
    for number in (2, 1):
        run_part(str(plan), PlanPart(number, 2))
    again = run_part(str(plan), PlanPart(1, 1))
    assert again.finished_before == 1
    registry = open_registry(tmp_path / "parts")
    collect_parts(registry, CollectRequest(plan=str(plan), parts_only=True))
    data = tree(tmp_path / "one/data")
    assert data["pets/ledger.jsonl"].count(b"SRC") == 3
    assert tree(tmp_path / "parts/data") == data


def test_a_journal_holds_skipped_items_whose_keys_are_not_utf8(tmp_path) -> None:
    shard = PlannedShard("train", 0, "a", "index/a.index", ())
    stage = LocalStorage(tmp_path)
    digest = hashed_write(stage, "build/a", b"")
    hashed_write(stage, "build/index/a.index", b"")
    entry = {"bytes": 0, "blake3": digest.blake3, "sha256": digest.sha256}
    made = MadeShard(
        entry=ShardEntry(
            path="a", split="train", records=0, payload_bytes=0, stream_blake3="", index="", **entry
        ),
        index=FileEntry(path="index/a.index", **entry),
        features={},
        skipped=[Skipped("train", "\udcff", "SRC002", "empty")],
    )
    sink = StageSink(stage, stage.below("build"))
    sink.finish(shard, made)
    assert sink.finished([shard]) == {shard.path: made}

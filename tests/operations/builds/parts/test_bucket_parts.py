"""Parts whose plan, shards or both are in a store, over fsspec's file system in memory."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import fsspec
import msgspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from python_data_support import Notes
from storage_support import Careless, counted
from tests_support import tree

from tfrecreg.amounts import SkipLimit
from tfrecreg.errors import FailureError, RefusedError, StorageError, UsageError
from tfrecreg.operations.builds.data import build
from tfrecreg.operations.builds.parts.collect import Collected, CollectRequest, collect_parts
from tfrecreg.operations.builds.parts.one_part import PartResult, PlanPart, run_part
from tfrecreg.operations.builds.parts.plan_files import PlanFolder
from tfrecreg.operations.builds.parts.plan_model import PlanDocument, render_plan, seal_plan
from tfrecreg.operations.builds.parts.plan_store import stage_shards
from tfrecreg.operations.builds.parts.prepare_plan import PlanWritten, plan_to
from tfrecreg.operations.builds.settings import BuildRequest
from tfrecreg.operations.check.run import check
from tfrecreg.operations.demo.digits import write_digits
from tfrecreg.operations.origin import origin_of
from tfrecreg.operations.release import ReleaseRequest, release
from tfrecreg.operations.remote.garbage import gc
from tfrecreg.registry.lookup import resolve
from tfrecreg.registry.registry import Registry, open_registry
from tfrecreg.shards import ShardPolicy
from tfrecreg.storage.local import LocalStorage
from tfrecreg.storage.remote import RemoteStorage

PLAN = "memory://lake/plans/digits"
DATA = "memory://lake/data"
SHARD = "digits-train.tfrecord-00001-of-00003"


class Altering(MemoryFileSystem):  # type: ignore[misc]
    """Files of which the first reading gives other bytes, as a bad network does."""

    protocol = "altering"
    store: dict[str, Any] = {}  # noqa: RUF012 - as fsspec has it
    altered: set[str] | None = None
    """Files that were read; None for no alterations."""

    def cat_file(self, path: str, *arguments: Any, **kwargs: Any) -> bytes:
        data: bytes = MemoryFileSystem.cat_file(self, path, *arguments, **kwargs)
        known = Altering.altered
        if known is None or "build/" not in path or path in known:
            return data
        known.add(path)
        return data[:-1] + bytes([data[-1] ^ 1])


fsspec.register_implementation("altering", Altering, clobber=True)


class Lake:
    """A registry with the dataset `digits`, not built yet, and a place for its plan."""

    def __init__(self, root: Path, raw: Path, *, plan: str = PLAN, data: str | None = DATA) -> None:
        self.root, self.raw, self.plan, self.data = root, raw, plan, data
        (root / "datasets").mkdir(exist_ok=True)
        line = f'data = "{data}"\n' if data else ""
        (root / "datasets/digits.toml").write_text(f'source = "mnist"\nraw = "raw"\n{line}')

    @property
    def registry(self) -> Registry:
        return open_registry(self.root)

    def request(self) -> BuildRequest:
        policy = ShardPolicy(shards=3)
        return BuildRequest(name="digits", source="mnist", raw=str(self.raw), policy=policy)

    def write_plan(self, **more: Any) -> PlanWritten:
        return plan_to(self.registry, self.request(), self.plan, **more)

    def part(self, number: int, of: int) -> PartResult:
        return run_part(self.plan, PlanPart(number, of))

    def collect(self, **more: Any) -> Collected:
        return collect_parts(self.registry, CollectRequest(plan=self.plan, **more))


@pytest.fixture
def make(memory: Any, original_site: Path, tmp_path: Path) -> Callable[..., Lake]:
    """Makes registries that share the raw data."""
    del memory

    def made(name: str = "registry", **places: Any) -> Lake:
        root = Path(shutil.copytree(original_site / "registry", tmp_path / name))
        return Lake(root, original_site / "raw", **places)

    return made


@pytest.fixture
def lake(make: Callable[..., Lake]) -> Lake:
    """With a plan and no shards."""
    found = make()
    found.write_plan()
    return found


def stored(memory: Any, url: str) -> dict[str, bytes]:
    """Content of each file below a URL, by its path there."""
    start = url.removeprefix("memory:/")
    return {path.removeprefix(start): memory.cat_file(path) for path in memory.find(start)}


def shards_of(lake: Lake) -> str:
    """Where the shards go, as a path of the file system in memory."""
    return PlanFolder.open(lake.plan).shards.root.removeprefix("memory:/")


@pytest.mark.parametrize("data", [DATA, None], ids=["bucket", "registry"])
@pytest.mark.parametrize("plan", [PLAN, "folder"])
def test_the_build_is_that_of_one_command(
    make: Callable[..., Lake],
    memory: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    plan: str,
    data: str | None,
) -> None:
    one = make("one", data=data and "memory://one/data")
    build(one.registry, one.request())
    lake = make(plan=plan if plan == PLAN else str(tmp_path / plan), data=data)
    written = lake.write_plan()
    assert written.folder == lake.plan
    (tmp_path / "scratch").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    monkeypatch.setattr("tempfile.tempdir", None)
    assert [len(lake.part(number, 3).shards) for number in (1, 3)] == [2, 2]
    again = lake.part(1, 3)
    assert again.finished_before == len(again.shards) == 2
    with pytest.raises(UsageError, match=r"2 of 6 shards are missing, of the part `2/3`"):
        lake.collect(parts_only=True)
    assert not (lake.root / "data/digits").exists()
    done = lake.collect()
    assert (done.from_parts, len(done.made_here)) == (4, 2)
    assert not list((tmp_path / "scratch").iterdir())
    assert not list((lake.root / ".tfrecreg/stage").rglob("*.tfrecord*"))
    files = tree(one.root / "data")
    if data is not None:
        order = written.document.order
        assert stored(memory, f"{data}/digits/{order}") == stored(
            memory, f"memory://one/data/digits/{order}"
        )
        where = files.pop("digits/location.json").replace(b"//one/", b"//lake/")
        files["digits/location.json"] = where
    assert tree(lake.root / "data") == files
    release(lake.registry, ReleaseRequest(name="digits", version="1.0.0"))
    (report,) = check(["digits@1.0.0"], registry=lake.registry)
    assert (report.status, report.records) == ("pass", 39)
    parts = origin_of(resolve(lake.registry, "digits@1.0.0")).parts
    assert parts is not None
    assert len(parts.receipts) == 6


def test_nothing_is_made_or_changed_twice(lake: Lake, memory: Any) -> None:
    lake.part(1, 1)
    before = {path: memory.info(path)["created"] for path in memory.find("/lake")}
    assert lake.part(1, 1).finished_before == 6
    # As a kill leaves it, or somebody who removes files.
    shards, other = shards_of(lake), SHARD.replace("train", "test")
    gone = {
        f"/lake/plans/digits/receipts/{SHARD}.json",
        f"{shards}/{other}",
        f"{shards}/digits-test.tfrecord-00002-of-00003",
    }
    for path in gone:
        memory.rm_file(path)
    with pytest.raises(UsageError, match="3 of 6 shards are missing"):
        lake.collect(parts_only=True)
    assert lake.part(1, 1).finished_before == 3
    after = {path: memory.info(path)["created"] for path in memory.find("/lake")}
    assert after.keys() == before.keys()
    assert {path for path in after if after[path] != before[path]} == gone
    lake.collect(parts_only=True)


def test_a_part_gives_way_to_another_that_was_faster(
    lake: Lake, memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It saw no shard of the other one, and finds all of them when it puts its own there."""
    lake.part(1, 1)
    before = stored(memory, "memory://lake")
    finished = "tfrecreg.operations.builds.parts.receipts.PlanSink.finished"
    monkeypatch.setattr(finished, lambda *_: {})
    assert lake.part(1, 1).finished_before == 0
    assert stored(memory, "memory://lake") == before


@pytest.mark.parametrize("place", [DATA, None], ids=["bucket", "plan"])
def test_publishing_asks_for_each_file_once(
    make: Callable[..., Lake], memory: Any, monkeypatch: pytest.MonkeyPatch, place: str | None
) -> None:
    lake = make(data=place)
    lake.write_plan()
    calls = counted(memory, monkeypatch)
    lake.part(1, 1)
    items = f"/lake/plans/digits/items/{SHARD}.jsonl.gz"
    assert [call for call in calls if items in call] == [f"cat_file {items}"]
    calls.clear()
    assert lake.part(1, 1).finished_before == 6
    receipt = f"/lake/plans/digits/receipts/{SHARD}.json"
    assert [call for call in calls if SHARD in call] == [f"cat_file {receipt}"]
    calls.clear()
    lake.collect(parts_only=True)
    asked = {f"cat_file {path}" for path in (items, receipt, f"{shards_of(lake)}/{SHARD}")}
    if place is not None:
        asked.add(f"info {shards_of(lake)}/index/{SHARD}.index")  # memory:// does so to put it
    assert sorted(call for call in calls if SHARD in call) == sorted(asked)
    calls.clear()
    check(["digits"], registry=lake.registry)
    in_bucket = [] if place is None else [f"cat_file {shards_of(lake)}/{SHARD}"]
    assert [call for call in calls if SHARD in call] == in_bucket


def test_publishing_elsewhere_needs_no_right_to_write(
    make: Callable[..., Lake], memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is needed to make a missing shard, and asked for before the shard is made."""
    lake = make(data=None)
    lake.write_plan()
    lake.part(1, 1)
    before = stored(memory, PLAN)

    def refused(*_: Any, **__: Any) -> None:
        raise PermissionError

    for method in ("pipe_file", "put_file", "rm_file"):
        monkeypatch.setattr(type(memory), method, refused)
    lake.collect(parts_only=True)
    (report,) = check(["digits"], registry=lake.registry)
    assert report.status == "pass"
    assert stored(memory, PLAN) == before
    del memory.store[f"/lake/plans/digits/receipts/{SHARD}.json"]
    made = "tfrecreg.operations.builds.parts.collect.make_shards"
    monkeypatch.setattr(made, lambda *_, **__: pytest.fail("a shard was made"))
    with pytest.raises(StorageError) as raised:
        lake.collect()
    assert raised.value.exit_code == 3
    assert raised.value.message.startswith(f"cannot write `{PLAN}/.tfrecreg-probe-")
    assert raised.value.message.endswith("`: permission denied")


@pytest.mark.parametrize("place", [DATA, None], ids=["bucket", "plan"])
def test_a_shard_that_cannot_be_read_is_no_forgery(
    make: Callable[..., Lake], memory: Any, monkeypatch: pytest.MonkeyPatch, place: str | None
) -> None:
    lake = make(data=place)
    lake.write_plan()
    lake.part(1, 1)
    original = type(memory).cat_file

    def cut(system: Any, path: str, *given: Any, **options: Any) -> Any:
        if path.endswith(SHARD):
            raise ConnectionError("cut")
        return original(system, path, *given, **options)

    monkeypatch.setattr(type(memory), "cat_file", cut)
    monkeypatch.setenv("TFRECREG_REMOTE_ATTEMPTS", "2")
    with pytest.raises(FailureError) as raised:
        lake.collect()
    assert raised.value.exit_code == 3
    assert raised.value.message.endswith(
        f"cannot read `memory:/{shards_of(lake)}/{SHARD}` after 2 attempts: ConnectionError: cut"
    )
    assert not (lake.root / "data/digits").exists()


@pytest.mark.parametrize("place", [DATA, None], ids=["bucket", "plan"])
def test_what_is_forged_is_refused_and_the_hint_says_what_to_remove(
    make: Callable[..., Lake], memory: Any, place: str | None
) -> None:
    lake = make(data=place)
    lake.write_plan()
    lake.part(1, 2)
    lake.part(2, 2)
    shards = shards_of(lake)
    data = bytearray(memory.cat_file(f"{shards}/{SHARD}"))
    data[40] ^= 1
    memory.pipe_file(f"{shards}/{SHARD}", bytes(data))
    with pytest.raises(RefusedError) as raised:
        lake.collect()
    assert raised.value.message.startswith(
        f"nothing was published: `{SHARD}`: its bytes are not those of its receipt: expected "
    )
    assert raised.value.hint is not None
    names = [
        f"{PLAN}/receipts/{SHARD}.json",
        f"memory:/{shards}/{SHARD}",
    ]
    assert raised.value.hint.startswith(
        f"find out how it was made; remove `{names[0]}` and `{names[1]}`, and it is made again: "
        f"`tfrecreg parts build {PLAN} --part "
    )
    assert not (lake.root / "data/digits").exists()
    assert not any(path.endswith("manifest.json") for path in memory.find("/lake"))
    for name in names:
        memory.rm_file(name.removeprefix("memory:/"))
    lake.part(1, 2)
    lake.part(2, 2)
    assert lake.collect(parts_only=True, verify=None).from_parts == 6


@pytest.mark.parametrize("data", ["altering://lake/build", None], ids=["bucket", "plan"])
def test_bytes_that_were_altered_on_their_way_are_not_called_forged(
    make: Callable[..., Lake], monkeypatch: pytest.MonkeyPatch, data: str | None
) -> None:
    lake = make(plan="altering://lake/plan", data=data)
    lake.write_plan()
    lake.part(1, 1)
    # Shards, when they are copied or read back.
    monkeypatch.setattr(Altering, "altered", set())
    lake.collect(parts_only=True)
    assert Altering.altered is not None
    assert len(Altering.altered) == 6
    Altering.altered.clear()
    (report,) = check(["digits"], registry=lake.registry)
    assert (report.status, report.records) == ("pass", 39)
    assert len(Altering.altered) == (0 if data is None else 6)
    Altering.store.clear()


def test_a_shard_that_vanishes_is_named(
    lake: Lake, memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.part(1, 1)

    def removed(*given: Any) -> Any:
        memory.rm_file(f"{shards_of(lake)}/{SHARD}")
        return stage_shards(*given)

    monkeypatch.setattr("tfrecreg.operations.builds.parts.collect.stage_shards", removed)
    with pytest.raises(RefusedError, match=f"`{SHARD}`: it was removed meanwhile"):
        lake.collect(parts_only=True)
    assert not (lake.root / "data/digits").exists()


def test_a_part_replaces_nothing_in_a_store(lake: Lake, memory: Any) -> None:
    """It names the file that is in its way."""
    lake.part(1, 1)
    receipt = f"/lake/plans/digits/receipts/{SHARD}.json"
    for data in (b"{}", memory.cat_file(receipt.replace("00001", "00002"))):
        memory.pipe_file(receipt, data)
        with pytest.raises(StorageError) as raised:
            lake.part(1, 1)
        assert raised.value.message == (
            f"`memory:/{receipt}` is not the receipt of the shard that was made here"
        )
        assert raised.value.hint == "find out how it was made; remove it, and run the part again"
        assert memory.cat_file(receipt) == data
        with pytest.raises(RefusedError, match=f"nothing was published: `{SHARD}`: its receipt"):
            lake.collect()
    memory.rm_file(receipt)
    shard = f"{shards_of(lake)}/{SHARD}"
    memory.pipe_file(shard, b"other")
    with pytest.raises(StorageError, match=f"{SHARD}` exists with other bytes") as raised:
        lake.part(1, 1)
    assert raised.value.exit_code == 3
    assert memory.cat_file(shard) == b"other"


def test_shards_of_other_code_are_found_by_making_them_again(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tfrecreg_mnist.source as mnist
    from tfrecreg.api import int64_feature

    original = mnist.MnistSource.example

    def wrong(self: Any, item: Any) -> Any:
        return {**original(self, item), "image/class/label": int64_feature(3)}

    with monkeypatch.context() as patch:
        patch.setattr(mnist.MnistSource, "example", wrong)
        lake.part(1, 1)
    with pytest.raises(RefusedError) as raised:
        lake.collect(verify=SkipLimit.parse("100%"))
    name = "digits-test.tfrecord-00000-of-00003"
    assert (
        f"`{name}` differs from what the raw data produce here: record 0, `" in raised.value.message
    )
    assert raised.value.hint is not None
    assert f"remove `{PLAN}/receipts/{name}.json` and `memory:/{shards_of(lake)}/{name}`, and" in (
        raised.value.hint
    )


def test_a_plan_never_overwrites(lake: Lake, make: Callable[..., Lake], memory: Any) -> None:
    lake.part(1, 1)
    before = stored(memory, "memory://lake")
    again = lake.write_plan()  # the same plan is there
    assert again.document == PlanFolder.open(PLAN).document
    assert stored(memory, "memory://lake") == before
    other = make("other", data=None)
    with pytest.raises(UsageError) as raised:
        other.write_plan()
    assert raised.value.message.startswith(f"`{PLAN}` has another plan: its digest is `")
    assert raised.value.hint is not None
    assert "a plan never overwrites" in raised.value.hint
    moved = make("moved")
    moved.raw = Path(shutil.copytree(lake.raw, lake.root / "raw"))  # with the times
    with pytest.raises(UsageError, match=f"with the raw data in `{lake.raw}` and `{moved.raw}`"):
        moved.write_plan()
    other.plan = "memory://lake/plans"
    with pytest.raises(UsageError) as raised:
        other.write_plan()
    assert raised.value.message == "`memory://lake/plans` is not empty: it has `digits`"
    assert stored(memory, "memory://lake") == before


def test_a_killed_planning_goes_on(lake: Lake, memory: Any) -> None:
    before = stored(memory, PLAN)
    for path in ("plan.json", "raw.jsonl.gz", f"items/{SHARD}.jsonl.gz"):
        memory.rm_file(f"/lake/plans/digits/{path}")
    with pytest.raises(UsageError, match=f"`{PLAN}` holds no plan: `plan.json` is missing"):
        lake.part(1, 1)
    lake.write_plan()
    assert stored(memory, PLAN).keys() == before.keys()
    memory.rm_file("/lake/plans/digits/plan.json")
    memory.pipe_file("/lake/plans/digits/raw.jsonl.gz", b"of other raw data")
    with pytest.raises(StorageError, match=r"raw.jsonl.gz` exists with other bytes"):
        lake.write_plan()


@pytest.mark.parametrize("what", ["plan", "data"])
def test_a_store_that_overwrites_is_refused(make: Callable[..., Lake], what: str) -> None:
    lake = make(**{what: "careless://lake/x"})
    with pytest.raises(StorageError, match="is in a store that overwrites files although it was"):
        lake.write_plan()
    assert not Careless.store


def test_a_part_refuses_a_store_that_overwrites(lake: Lake, memory: Any) -> None:
    """The plan was copied to it."""
    for path, data in stored(memory, PLAN).items():
        RemoteStorage("careless://copy").put_if_absent(path.strip("/"), data)
    before = set(Careless.store)
    with pytest.raises(StorageError, match="`careless://copy` is in a store that overwrites"):
        run_part("careless://copy", PlanPart(1, 1))
    assert set(Careless.store) == before
    Careless.store.clear()


def test_the_places_of_plan_and_dataset_have_to_agree(
    lake: Lake, make: Callable[..., Lake], tmp_path: Path
) -> None:
    lake.part(1, 1)
    where = f"memory:/{shards_of(lake)}"
    for name, data, there in (
        ("here", None, "`data/`"),
        ("there", "memory://sea", f"`memory://sea/digits/{where[-64:]}`"),
    ):
        other = make(name, data=data)
        with pytest.raises(UsageError) as raised:
            other.collect()
        assert raised.value.message == (
            f"the plan `{PLAN}` puts shards into `{where}`, `datasets/digits.toml` into {there}"
        )
        assert raised.value.hint is not None
        assert not (other.root / "data/digits").exists()
    local = make("local", plan=str(tmp_path / "plan"), data=None)
    local.write_plan()
    with pytest.raises(UsageError, match=r"puts shards into `data/`, `datasets/digits.toml` into"):
        collect_parts(lake.registry, CollectRequest(plan=local.plan))


def test_gc_keeps_what_a_plan_uses(lake: Lake, memory: Any) -> None:
    """All of its shards are there since long ago, as an earlier plan left them."""
    lake.part(1, 1)
    for path in memory.find("/lake"):
        memory.store[path].created = datetime.now(timezone.utc) - timedelta(days=100)
    before = memory.find("/lake")
    build = f"memory:/{shards_of(lake)}"
    assert [each.path for each in gc(lake.registry, buckets=True)] == [build]
    folder = f"{shards_of(lake)}.receipts"
    memory.rm(folder, recursive=True)  # the note of today has that age here
    assert lake.part(1, 1).finished_before == 6
    assert gc(lake.registry, buckets=True, apply=True) == []
    assert memory.find("/lake") == before
    lake.collect(parts_only=True)
    notes = Notes()
    memory.store[f"{folder}/used-2020-01-01"] = memory.store[before[0]]
    assert gc(lake.registry, buckets=True, apply=True, older_than=0, progress=notes) == []


def test_gc_removes_what_a_plan_left_and_not_the_plan(lake: Lake, memory: Any) -> None:
    lake.part(1, 1)
    plan = stored(memory, PLAN)
    (found,) = gc(lake.registry, buckets=True, apply=True, older_than=0)
    assert found.path == f"memory:/{shards_of(lake)}"
    assert stored(memory, "memory://lake") == {
        f"/plans/digits{path}": data for path, data in plan.items()
    }
    with pytest.raises(UsageError, match="6 of 6 shards are missing, of the part `1/1`"):
        lake.collect(parts_only=True)
    assert len(lake.collect().made_here) == 6


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("https://example.org/plan", "a plan cannot be in `https://example.org/plan`: parts"),
        ("https://example.org/plan?X-Sig=secret", "a plan cannot be in `https://example.org/p"),
        ("file:///tmp/plan", "`file:///tmp/plan` is a local path written as a URL"),
        ("s3://", "`s3://` names no bucket or host"),
        ("nonsense://lake/x", "`nonsense://lake/x` is not read: `nonsense://` is not known as"),
    ],
)
def test_urls_that_hold_no_plan(make: Callable[..., Lake], url: str, message: str) -> None:
    lake = make(plan=url)
    for work in (lake.write_plan, lambda: lake.part(1, 1), lake.collect):
        with pytest.raises(UsageError) as raised:
            work()
        assert raised.value.message.startswith(message)
        assert "secret" not in str(raised.value)
        assert raised.value.hint


@pytest.mark.parametrize("data", ["https://example.org/x", "/etc", "s3://a:b@lake/x"])
def test_a_plan_that_puts_shards_elsewhere_is_refused(lake: Lake, memory: Any, data: str) -> None:
    path = "/lake/plans/digits/plan.json"
    plain = json.loads(memory.cat_file(path))
    plain["data"] = data
    memory.pipe_file(path, render_plan(seal_plan(msgspec.convert(plain, PlanDocument))))
    with pytest.raises(UsageError) as raised:
        lake.part(1, 1)
    assert raised.value.hint
    assert ":b@" not in raised.value.message
    if "@" not in data:
        assert raised.value.message == (
            f"`{PLAN}/plan.json` puts the shards into `{data}`, expected a folder in a bucket"
        )


def test_raw_data_in_a_store_leave_nothing_to_share(make: Callable[..., Lake], memory: Any) -> None:
    lake = make()
    memory.put(str(lake.raw), "/lake/raw", recursive=True)
    request = BuildRequest(
        name="digits", source="mnist", raw="memory://lake/raw", policy=ShardPolicy(shards=3)
    )
    plan_to(lake.registry, request, PLAN)
    for number in (2, 1):
        lake.part(number, 2)
    done = lake.collect(parts_only=True, verify=SkipLimit.parse("1"))
    assert len(done.verified) == 1


def test_a_plan_with_a_base_keeps_its_shards(
    make: Callable[..., Lake], memory: Any, tmp_path: Path
) -> None:
    """The base is in the bucket, too: its shards are made and stored again."""
    raw = tmp_path / "raw"
    shutil.copytree(make().raw, raw)
    lake = make("growing")
    lake.raw = raw
    lake.write_plan()
    first = lake.collect().built.manifest
    release(lake.registry, ReleaseRequest(name="digits", version="1.0.0"))
    write_digits(LocalStorage(raw), train=30, test=12, seed=1)
    shutil.copytree(lake.root, tmp_path / "one")
    request = BuildRequest(name="digits", source="mnist", raw=str(raw))
    grown = build(open_registry(tmp_path / "one"), request).manifest
    assert grown.digest != first.digest
    for path in memory.find("/lake/plans"):
        memory.rm_file(path)
    plan_to(lake.registry, request, PLAN)
    for number in (1, 2):
        run_part(PLAN, PlanPart(number, 2), registry=lambda: lake.registry)
    assert lake.collect(parts_only=True).built.manifest == grown

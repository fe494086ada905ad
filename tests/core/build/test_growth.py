"""A build that grows from a release keeps its shards, and writes little more than the changes."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest
from tests_support import tree

from tfrecreg.builtin.python_data.build import build
from tfrecreg.builtin.releases.release import ReleaseRequest, release
from tfrecreg.core.build.conclude import BuildResult
from tfrecreg.core.build.request import BuildRequest
from tfrecreg.core.build.run import Preview, preview
from tfrecreg.core.check.run import check
from tfrecreg.core.registry.init import init
from tfrecreg.core.registry.registry import Registry, open_registry
from tfrecreg.core.values.errors import ManifestError, UsageError
from tfrecreg.core.values.shards import ShardPolicy
from tfrecreg.core.workers.local import LocalEngine


class Raw:
    """Digits of noise whose number and pixels can be changed."""

    def __init__(self, folder: Path, train: int = 400, test: int = 40) -> None:
        self.folder = folder
        self.folder.mkdir(exist_ok=True)
        rng = random.Random(1)
        self.images = {
            name: [rng.randbytes(784) for _ in range(count)]
            for name, count in (("train", train), ("t10k", test))
        }
        self.write()

    def write(self) -> None:
        for name, images in self.images.items():
            count = len(images)
            pixels = struct.pack(">IIII", 0x803, count, 28, 28) + b"".join(images)
            labels = struct.pack(">II", 0x801, count) + bytes(n % 10 for n in range(count))
            (self.folder / f"{name}-images-idx3-ubyte").write_bytes(pixels)
            (self.folder / f"{name}-labels-idx1-ubyte").write_bytes(labels)

    def add(self, count: int) -> None:
        rng = random.Random(len(self.images["train"]))
        self.images["train"] += [rng.randbytes(784) for _ in range(count)]
        self.write()

    def change(self, number: int) -> None:
        old = self.images["train"][number]
        self.images["train"][number] = bytes([old[0] ^ 1]) + old[1:]
        self.write()

    def cut(self, count: int) -> None:
        del self.images["train"][-count:]
        self.write()


class Story:
    def __init__(self, folder: Path) -> None:
        self.root = folder / "registry"
        self.raw = Raw(folder / "raw")
        init(self.root, with_dvc=False)

    @property
    def registry(self) -> Registry:
        return open_registry(self.root)

    def request(self, **changes) -> BuildRequest:
        return BuildRequest(name="d", source="mnist", raw=str(self.raw.folder), **changes)

    def build(self, jobs: int = 1, **changes) -> BuildResult:
        return build(self.registry, self.request(**changes), engine=LocalEngine(jobs))

    def release(self, version: str | None = None) -> str:
        done = release(self.registry, ReleaseRequest(name="d", version=version))
        return str(done.version)

    def shards(self) -> dict[str, int]:
        """File name to inode."""
        found = (self.root / "data/d").glob("*.tfrecord-*")
        return {path.name: path.stat().st_ino for path in found}

    def clean(self) -> bool:
        (report,) = check(["d"], registry=str(self.root))
        return report.status == "pass"


def shards(result: BuildResult | Preview) -> tuple[int, int, int]:
    """How many shards were kept, rewritten and new."""
    growth = result.growth
    assert growth is not None
    assert (growth.written_bytes == 0) == (growth.rewritten == growth.new == 0)
    return growth.kept, growth.rewritten, growth.new


@pytest.fixture
def story(tmp_path: Path) -> Story:
    """Released as 1.0.0 in four shards a split."""
    made = Story(tmp_path)
    made.build(policy=ShardPolicy(shards=4))
    made.release("1.0.0")
    return made


def test_nothing_new_is_the_release_again_to_the_byte(story: Story) -> None:
    before = tree(story.root / "data")
    result = story.build()
    assert tree(story.root / "data") == before
    assert shards(result) == (8, 0, 0)
    assert result.unchanged
    assert story.release() == "1.0.0"


def test_additions_go_into_new_shards_and_cost_little_more_than_themselves(story: Story) -> None:
    old = set(story.shards().values())
    story.raw.add(40)
    result = story.build()
    assert shards(result) == (8, 0, 1)
    added = sum(e.bytes for e in result.manifest.shards if "00004-of-00005" in e.path)
    assert result.growth is not None
    assert result.growth.written_bytes == added
    assert old < set(story.shards().values())
    assert result.manifest.base is not None
    assert result.manifest.base.version == "1.0.0"
    assert story.clean()
    assert story.release() == "1.1.0"


def test_a_changed_record_rewrites_its_shard_alone(story: Story) -> None:
    old = story.shards()
    story.raw.change(17)
    assert shards(story.build()) == (7, 1, 0)
    assert len(old.keys() & story.shards().keys()) == 8
    same = [name for name, inode in story.shards().items() if old[name] == inode]
    assert len(same) == 7
    assert story.clean()
    assert story.release() == "2.0.0"


def test_what_is_made_again_and_is_the_same_is_kept(story: Story) -> None:
    story.build(policy=ShardPolicy(shards=3), base="none")
    assert shards(story.build()) == (8, 0, 0)


def test_records_that_are_gone_leave_their_shards(story: Story) -> None:
    story.raw.cut(1)
    assert shards(story.build()) == (7, 1, 0)
    assert story.clean()


@pytest.mark.medium
def test_small_shards_at_the_end_are_merged_with_what_is_added(story: Story) -> None:
    story.raw.add(5)
    story.build()
    story.release("1.1.0")
    story.raw.add(50)  # ten times the small one
    assert shards(story.build()) == (8, 0, 1)
    story.release("1.2.0")
    story.raw.add(20)  # too little to rewrite fifty-five for
    assert shards(story.build()) == (9, 0, 1)
    assert story.clean()


def test_growth_does_not_depend_on_the_jobs_or_on_where_the_bytes_of_the_base_are(
    story: Story,
) -> None:
    story.raw.add(40)
    story.raw.change(3)
    story.build()
    grown = tree(story.root / "data")
    story.build(jobs=2)
    assert tree(story.root / "data") == grown
    for shard in (story.root / "versions/d/1.0.0").glob("*.tfrecord-*"):
        shard.unlink()
    story.build(base="1.0.0")
    assert tree(story.root / "data") == grown


def test_a_damaged_shard_of_the_base_is_made_again(story: Story) -> None:
    before = tree(story.root / "data")
    victim = next((story.root / "data/d").glob("*train*-00001-of-*"))
    data = bytearray(victim.read_bytes())
    data[100] ^= 1
    victim.unlink()
    victim.write_bytes(data)
    assert shards(story.build()) == (8, 0, 0)  # for a push, it is the base's
    assert tree(story.root / "data") == before


def test_base_none_and_a_number_of_shards_make_everything_anew(story: Story) -> None:
    assert story.build(base="none").growth is None
    assert story.build(policy=ShardPolicy(shards=2)).growth is None
    assert story.build(compression="gzip").growth is None


def test_a_dry_run_says_what_will_be_written(story: Story) -> None:
    story.raw.add(40)
    story.raw.change(3)
    before = tree(story.root)
    plan = preview(story.registry, story.request())
    assert tree(story.root) == before
    result = story.build()
    assert shards(plan) == shards(result) == (7, 1, 1)
    planned, made = plan.growth, result.growth
    assert planned is not None
    assert made is not None
    assert planned.kept_bytes == made.kept_bytes
    assert planned.new_bytes > planned.rewritten_bytes / 10 > 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"base": "1.0.0", "policy": ShardPolicy(shards=2)},
            "`--base` excludes options for the number of shards",
        ),
        (
            {"base": "1.0.0", "compression": "gzip"},
            "the base `d@1.0.0` has compression none, but the build has gzip",
        ),
        ({"base": "9.0.0"}, "no release `d@9.0.0`"),
        ({"base": "e@1.0.0"}, "no dataset `e`"),
    ],
)
def test_a_base_that_does_not_fit_is_refused(story: Story, changes, message) -> None:
    before = tree(story.root / "data")
    with pytest.raises(UsageError) as caught:
        story.build(**changes)
    assert message in str(caught.value)
    assert tree(story.root / "data") == before


@pytest.mark.parametrize("line", [b"{", b"[" * 100_000, b"{}", b'{"split":"\xff"}'])
def test_a_damaged_ledger_of_the_base_is_refused(story: Story, line: bytes) -> None:
    (story.root / "data/d/ledger.jsonl").write_bytes(line + b"\n")
    story.raw.add(1)
    with pytest.raises(ManifestError, match=r"`data/d/ledger\.jsonl` is not a ledger: ") as caught:
        story.build()
    assert "--base none" in caught.value.hint


def test_without_the_indexes_of_the_base_it_is_said_how_to_go_on(story: Story) -> None:
    for folder in ("versions/d/1.0.0/index", "data/d/index", ".tfrecreg/cache/index"):
        for path in (story.root / folder).rglob("*"):
            if path.is_file():
                path.unlink()
    with pytest.raises(UsageError) as caught:
        story.build()
    assert "in the base `d@1.0.0` is not on this machine" in str(caught.value)
    assert caught.value.hint == "`tfrecreg pull d@1.0.0` fetches it; `--base none` needs no base"

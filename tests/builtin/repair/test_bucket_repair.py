"""Builds and releases in a bucket are repaired there, byte for byte, over fsspec's memory."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hints_support import follow

from tfrecreg.builtin.repair.run import repair
from tfrecreg.cli.main import main
from tfrecreg.errors import RefusedError, StorageError, UsageError
from tfrecreg.operations.builds.data import build
from tfrecreg.operations.builds.settings import BuildRequest
from tfrecreg.operations.check.run import check
from tfrecreg.operations.demo.digits import write_digits
from tfrecreg.operations.init import init
from tfrecreg.operations.release import ReleaseRequest, release
from tfrecreg.operations.remote.transfer import pull
from tfrecreg.registry.locations import location_of
from tfrecreg.registry.registry import Registry, open_registry
from tfrecreg.storage.local import LocalStorage

CONFIG = """\
source = "mnist"
raw = "raw"
shards = 2
data = "memory://lake/data"
"""
SHARD = "digits-test.tfrecord-00000-of-00002"
INDEX = f"index/{SHARD}.index"
RELEASE = "digits@1.0.0"


@pytest.fixture
def registry(memory: Any, tmp_path: Path) -> Registry:
    """A registry with a build in a bucket, released as 1.0.0."""
    del memory
    root = tmp_path / "registry"
    write_digits(LocalStorage(root / "raw"), train=30, test=20, seed=1)
    init(root, with_dvc=False)
    (root / "datasets").mkdir(exist_ok=True)
    (root / "datasets/digits.toml").write_text(CONFIG)
    registry = open_registry(root)
    build(registry, BuildRequest(name="digits"))
    release(registry, ReleaseRequest(name="digits", version="1.0.0"))
    return registry


class Bucket:
    """The folder of the build in the bucket."""

    def __init__(self, registry: Registry, memory: Any) -> None:
        url = location_of(registry, "registry/digits/1.0.0")
        assert url is not None
        self.url, self._memory = url, memory
        self._folder = url.removeprefix("memory:/")

    def files(self) -> dict[str, bytes]:
        paths = self._memory.find(self._folder)
        start = f"{self._folder}/"
        return {path.removeprefix(start): self._memory.cat_file(path) for path in paths}

    def damage(self, path: str, fate: str) -> None:
        full = f"{self._folder}/{path}"
        if fate == "lost":
            self._memory.rm_file(full)
        elif fate == "cut":
            self._memory.pipe_file(full, self._memory.cat_file(full)[:-30])
        else:
            data = bytearray(self._memory.cat_file(full))
            data[-20] ^= 1
            self._memory.pipe_file(full, bytes(data))


@pytest.fixture
def bucket(registry: Registry, memory: Any) -> Bucket:
    return Bucket(registry, memory)


def elsewhere(registry: Registry, *, raw: bool = True) -> Registry:
    """The registry as another clone has it: without the build."""
    root = Path(registry.storage.root)
    for name in ("data/digits", ".tfrecreg", *(() if raw else ("raw",))):
        shutil.rmtree(root / name)
    return open_registry(root)


@pytest.mark.parametrize("fate", ["lost", "cut", "flipped"])
@pytest.mark.parametrize("reference", ["digits", RELEASE])
def test_a_shard_in_the_bucket_is_repaired_there(
    registry: Registry, bucket: Bucket, reference: str, fate: str
) -> None:
    before = bucket.files()
    bucket.damage(SHARD, fate)
    found = repair(registry, reference)
    (made,) = found.shards
    assert (made.entry.path, made.taken) == (SHARD, {"lost": 0, "cut": 9, "flipped": 9}[fate])
    assert bucket.files() == before
    assert repair(registry, reference).shards == ()


@pytest.mark.parametrize("path", [INDEX, "labels.json", "schema.pbtxt", "manifest.json"])
@pytest.mark.parametrize("here", [True, False])
def test_any_file_of_the_bucket_is_repaired(
    registry: Registry, bucket: Bucket, path: str, here: bool
) -> None:
    before = bucket.files()
    for fate in ("lost", "cut"):
        bucket.damage(path, fate)
        repair(registry if here else elsewhere_once(registry), RELEASE)
        assert bucket.files() == before


def elsewhere_once(registry: Registry) -> Registry:
    if Path(registry.storage.root, "data/digits").exists():
        return elsewhere(registry)
    return registry


@pytest.mark.parametrize("path", [INDEX, "labels.json"])
def test_small_files_of_a_build_come_from_its_bucket(
    registry: Registry, bucket: Bucket, path: str
) -> None:
    """Those in `data/`, which `check` looks at."""
    folder = Path(registry.storage.root, "data/digits")
    before = {each.name: each.read_bytes() for each in folder.rglob("*") if each.is_file()}
    (folder / path).unlink()
    found = repair(registry, "digits")
    assert (found.folder, list(found.copied), found.shards) == ("data/digits", [path], ())
    after = {each.name: each.read_bytes() for each in folder.rglob("*") if each.is_file()}
    assert after == before


def test_a_copy_here_is_sent_again(registry: Registry, bucket: Bucket) -> None:
    before = bucket.files()
    pull(registry, RELEASE)
    other = elsewhere(registry, raw=False)
    bucket.damage(SHARD, "lost")
    bucket.damage("ledger.jsonl", "lost")
    found = repair(other, RELEASE)
    assert (found.shards, found.copied) == ((), (SHARD, "ledger.jsonl"))
    assert bucket.files() == before


def test_a_damaged_copy_here_comes_from_the_bucket(registry: Registry, bucket: Bucket) -> None:
    pull(registry, RELEASE)
    other = elsewhere(registry, raw=False)
    copy = Path(registry.storage.root, "versions/digits/1.0.0", SHARD)
    before = copy.read_bytes()
    copy.unlink()
    copy.write_bytes(before[:-1])
    found = repair(other, RELEASE)
    assert (found.folder, found.copied) == ("versions/digits/1.0.0", (SHARD,))
    assert copy.read_bytes() == before


def test_without_raw_data_nothing_is_changed(registry: Registry, bucket: Bucket) -> None:
    bucket.damage(SHARD, "flipped")
    before = bucket.files()
    with pytest.raises(UsageError) as caught:
        repair(elsewhere(registry, raw=False), RELEASE)
    assert "does not exist" in caught.value.message
    assert caught.value.hint == (
        "name them: tfrecreg repair digits@1.0.0 --raw PATH; without the raw data "
        "`digits@1.0.0` cannot be repaired here, only restored from a backup"
    )
    assert bucket.files() == before


def test_other_raw_data_change_nothing(registry: Registry, bucket: Bucket) -> None:
    write_digits(LocalStorage(Path(registry.storage.root, "raw")), train=30, test=20, seed=2)
    bucket.damage(SHARD, "lost")
    before = bucket.files()
    with pytest.raises(RefusedError, match="cannot be repaired, and nothing was changed") as caught:
        repair(registry, RELEASE)
    assert caught.value.hint.endswith("restore the files from a backup")
    assert bucket.files() == before


def test_a_bucket_that_cannot_be_read_is_not_damaged(
    registry: Registry, bucket: Bucket, memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = bucket.files()
    real = type(memory).info

    def refused(self: Any, path: str, **options: Any) -> Any:
        if path.endswith(SHARD):
            raise PermissionError(13, "Permission denied")
        return real(self, path, **options)

    with monkeypatch.context() as patch:
        patch.setattr(type(memory), "info", refused)
        with pytest.raises(StorageError):
            repair(registry, RELEASE)
    assert bucket.files() == before


def test_the_command(
    registry: Registry, bucket: Bucket, capsys: pytest.CaptureFixture[str]
) -> None:
    bucket.damage(SHARD, "lost")
    other = elsewhere(registry)
    root = str(other.storage.root)
    assert main(["-C", root, "repair", RELEASE]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"repaired {RELEASE}, in {bucket.url}"
    assert lines[1] == f"  {SHARD}: 10 records rebuilt, 0 intact"
    assert main(["-C", root, "pull", RELEASE]) == 0
    bucket.damage(SHARD, "lost")
    capsys.readouterr()
    assert main(["-C", root, "repair", RELEASE]) == 0
    assert f"  {SHARD}: restored from a copy" in capsys.readouterr().out.splitlines()
    bucket.damage(SHARD, "lost")
    capsys.readouterr()
    assert main(["-C", root, "repair", RELEASE, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["copied"], document["files"], document["shards"]) == ([SHARD], [], [])


STATES = list(
    itertools.product(
        [SHARD, INDEX, "manifest.json", "schema.pbtxt"], ["lost", "cut"], [True, False], "bc"
    )
)
QUICK = (STATES[0], STATES[3], STATES[5])


@pytest.mark.parametrize("start", [f"check {RELEASE}", f"pull {RELEASE}", "check digits"])
@pytest.mark.parametrize(
    "state",
    [pytest.param(each, marks=() if each in QUICK else pytest.mark.slow) for each in STATES],
)
@pytest.mark.sweep
def test_hints_lead_out(
    registry: Registry,
    bucket: Bucket,
    capsys: pytest.CaptureFixture[str],
    state: tuple[str, str, bool, str],
    start: str,
) -> None:
    path, fate, raw, clone = state
    if clone == "c":
        if start == "check digits":
            pytest.skip("there is no build")
        elsewhere(registry, raw=raw)
    elif not raw:
        shutil.rmtree(Path(registry.storage.root, "raw"))
    before = bucket.files()
    bucket.damage(path, fate)
    walked = follow(Path(registry.storage.root), start, capsys)
    assert "dvc" not in "\n".join(walked.texts).lower(), walked
    if walked.done:
        (report,) = check([start.split()[1]], registry=registry)
        assert report.status == "pass", walked
        return
    # Only records that no place has are beyond repair, and what an index alone tells.
    assert not raw, walked
    assert path in (SHARD, INDEX), walked
    others = {name: data for name, data in before.items() if name != path}
    assert bucket.files().items() >= others.items()

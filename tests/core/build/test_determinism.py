"""The same input gives the same bytes, with any number of workers, locale and folder order."""

from __future__ import annotations

import json
import os
import random
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from tests_support import tree

from tfrecreg.builtin.python_data.build import build
from tfrecreg.cli.digits import write_digits
from tfrecreg.core.build.request import BuildRequest
from tfrecreg.core.build.shard import Stage
from tfrecreg.core.registry.init import init
from tfrecreg.core.registry.registry import Registry, open_registry
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.shards import ShardPolicy
from tfrecreg.core.workers.local import LocalEngine


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("raw")
    write_digits(LocalStorage(folder), train=150, test=50, seed=3)
    return folder


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """So many digits that worker processes are worth it: noise, which is quickly made."""
    folder = tmp_path_factory.mktemp("many")
    rng = random.Random(5)
    for name, count in (("train", 12_800), ("t10k", 100)):
        pixels = struct.pack(">IIII", 0x803, count, 28, 28) + rng.randbytes(count * 784)
        labels = struct.pack(">II", 0x801, count) + bytes(n % 10 for n in range(count))
        (folder / f"{name}-images-idx3-ubyte").write_bytes(pixels)
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(labels)
    return folder


def fresh(folder: Path) -> Registry:
    init(folder, with_dvc=False)
    return open_registry(folder)


def asked(raw: Path, shards: int = 3, **options) -> BuildRequest:
    policy = ShardPolicy(shards=shards)
    return BuildRequest(name="digits", source="mnist", raw=str(raw), policy=policy, **options)


def made(folder: Path, raw: Path, shards: int = 3, **options) -> dict:
    """Build in a new registry and return the manifest."""
    registry = fresh(folder)
    result = build(registry, asked(raw, shards, **options))
    return json.loads((folder / result.folder / "manifest.json").read_bytes())


def by_command(
    folder: Path, raw: Path, jobs: int, *options: str, **environment: str
) -> dict[str, bytes]:
    """Build in a process of its own and return every file of the build."""
    fresh(folder)
    arguments = ["build", "digits", "--source", "mnist", "--raw", str(raw), *options]
    subprocess.run(
        [sys.executable, "-m", "tfrecreg", "-C", str(folder), *arguments, "--jobs", str(jobs)],
        env={**os.environ, **environment},
        check=True,
        capture_output=True,
        timeout=120,
    )
    return tree(folder / "data")


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(("--shards", "1"), marks=pytest.mark.slow),
        pytest.param(("--shards", "2", "--compression", "gzip"), marks=pytest.mark.slow),
    ],
)
def test_jobs_hash_seed_locale_and_folder_order_change_no_byte(many, tmp_path, options) -> None:
    raw = many
    first = by_command(tmp_path / "one", raw, 1, *options, PYTHONHASHSEED="1", LC_ALL="C", TZ="UTC")
    shuffled = tmp_path / "shuffled"
    shuffled.mkdir()
    names = sorted(path.name for path in raw.iterdir())
    random.Random(5).shuffle(names)
    for name in names:
        (shuffled / name).write_bytes((raw / name).read_bytes())
    other = {"PYTHONHASHSEED": "77", "LC_ALL": "C.UTF-8", "TZ": "Asia/Tokyo"}
    second = by_command(tmp_path / "two", shuffled, 2, *options, **other)
    assert first.keys() == second.keys()
    assert first == second


@pytest.mark.slow
def test_shards_made_whole_and_in_segments_by_workers_are_the_same(many, tmp_path) -> None:
    trees = []
    for jobs in (2, 5):  # eight shards: enough for two workers, too few for five
        registry = fresh(tmp_path / str(jobs))
        build(registry, asked(many, 4), engine=LocalEngine(jobs))
        assert not list((tmp_path / str(jobs) / ".tfrecreg/stage").rglob("*"))
        trees.append(tree(tmp_path / str(jobs) / "data"))
    assert trees[0] == trees[1]


def test_content_does_not_depend_on_shards_or_compression(raw, tmp_path) -> None:
    plain = made(tmp_path / "a", raw)
    packed = made(tmp_path / "b", raw, compression="gzip")
    single = made(tmp_path / "c", raw, shards=1)
    assert plain["content"] == packed["content"] == single["content"]
    assert [split["content"] for split in plain["splits"]] == [
        split["content"] for split in single["splits"]
    ]
    streams = [
        [shard["stream_blake3"] for shard in manifest["shards"]] for manifest in (plain, packed)
    ]
    assert streams[0] == streams[1]
    assert len({plain["digest"], packed["digest"], single["digest"]}) == 3


def test_content_depends_on_the_split_that_an_example_is_in(raw, tmp_path) -> None:
    moved = tmp_path / "moved"
    moved.mkdir()
    for path in raw.iterdir():
        name = path.name
        other = name.replace("train", "t10k") if "train" in name else name.replace("t10k", "train")
        (moved / other).write_bytes(path.read_bytes())
    assert made(tmp_path / "a", raw)["content"] != made(tmp_path / "b", moved)["content"]


def interrupted(folder: Path, raw: Path, monkeypatch: pytest.MonkeyPatch, after: int) -> Registry:
    """A registry with a build that was interrupted after so many finished shards."""
    registry = fresh(folder)
    original, calls = Stage.finish, []

    def finish(*arguments) -> None:
        original(*arguments)
        calls.append(arguments)
        if len(calls) == after:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Stage, "finish", finish)
        with pytest.raises(KeyboardInterrupt):
            build(registry, asked(raw))
    return registry


def test_a_killed_build_goes_on_and_ends_with_the_same_bytes(raw, tmp_path, monkeypatch) -> None:
    whole = made(tmp_path / "whole", raw)
    registry = interrupted(tmp_path / "killed", raw, monkeypatch, after=2)
    assert registry.dataset("digits").build_manifest() is None
    (stage,) = (tmp_path / "killed").glob(".tfrecreg/stage/digits/*/build")
    with LocalStorage(stage).create("digits-test.tfrecord-00000-of-00003") as writer:
        writer.write(b"half a shard")
        (half,) = stage.glob(".digits-test*")
        left = half.read_bytes()
        writer.abort()
    half.write_bytes(left)  # what a kill in the middle of a write leaves behind
    result = build(registry, asked(raw))
    assert result.resumed == 2
    assert result.manifest.digest == whole["digest"]
    assert tree(tmp_path / "killed/data") == tree(tmp_path / "whole/data")
    assert not (tmp_path / "killed/.tfrecreg/stage/digits").exists()


def test_a_finished_shard_that_was_damaged_is_made_again(raw, tmp_path, monkeypatch) -> None:
    registry = interrupted(tmp_path / "killed", raw, monkeypatch, after=1)
    (shard,) = (tmp_path / "killed").glob(".tfrecreg/stage/digits/*/build/*.tfrecord-*")
    shard.write_bytes(shard.read_bytes()[:-1])
    result = build(registry, asked(raw))
    assert result.resumed == 0
    assert result.report.status == "pass"

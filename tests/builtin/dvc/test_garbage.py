"""`gc` removes a copy only when it saw each object of it in the remote, sound."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("dvc", reason="the extra `dvc` is not installed")

from git_support import git
from tests_support import Watcher, tree

from tfrecreg.builtin.dvc.garbage import gc
from tfrecreg.builtin.dvc.transfer import pull, push
from tfrecreg.cli.main import main
from tfrecreg.core.registry.registry import open_registry

SHARD = "digits-test.tfrecord-00000-of-00002"


def with_copy(story: Any) -> Any:
    """A clone that pulled a release, and whose cache is gone: `versions/` is its only copy."""
    push(open_registry(story.root))
    other = story.elsewhere()
    pull(open_registry(other.root), "digits@1.0.0")
    shutil.rmtree(other.root / ".dvc/cache")
    return other


@pytest.mark.parametrize("path", [SHARD, ""])
def test_the_only_good_copy_stays(placed: Any, path: str) -> None:
    """A first `gc` taught DVC's index that the remote has all files of the list."""
    other = with_copy(placed)
    placed.remote.remove(placed.objects("1.0.0")[path])
    registry = open_registry(other.root)
    before = tree(other.root / "versions")
    for apply in (False, False, True, True):
        assert gc(registry, apply=apply) == []
    assert tree(other.root / "versions") == before
    assert push(registry, ["digits@1.0.0"]).objects == 1
    (found,) = gc(registry, apply=True)
    assert (found.kind, found.path) == ("version", "versions/digits/1.0.0")
    assert not (other.root / "versions/digits/1.0.0").exists()
    pull(registry, "digits@1.0.0")
    assert tree(other.root / "versions") == before


@pytest.mark.medium
def test_a_copy_stays_beside_a_damaged_remote(placed: Any) -> None:
    other = with_copy(placed)
    oid = placed.objects("1.0.0")[SHARD]
    placed.remote.put(oid, placed.remote.all()[oid].swapcase())
    registry = open_registry(other.root)
    # Only what is removed is read before.
    assert [each.kind for each in gc(registry)] == ["version"]
    notes = Watcher()
    assert gc(registry, apply=True, progress=notes) == []
    assert notes.notes == [
        f"`versions/digits/1.0.0` is kept, because `{SHARD}` is damaged in the remote: "
        "`tfrecreg push --repair digits@1.0.0` replaces the damaged file"
    ]
    assert push(registry, ["digits@1.0.0"], repair=True).replaced == 1
    assert [each.kind for each in gc(registry, apply=True)] == ["version"]


def test_another_size_is_seen_in_the_listing(story: Any) -> None:
    other = with_copy(story)
    story.remote.put(story.objects("1.0.0")[SHARD], b"damaged")
    assert gc(open_registry(other.root)) == []


@pytest.mark.parametrize("fate", ["lost", "damaged"])
def test_what_a_release_needs_stays_without_its_list(story: Any, fate: str) -> None:
    """A build that nothing refers to shares a shard with a release whose list is gone."""
    root: Path = story.root
    oid = story.objects("1.0.0")[SHARD]
    others = [
        {"md5": oid, "relpath": SHARD},
        {"md5": story.objects("1.0.0")["manifest.json"], "relpath": "manifest.json"},
    ]
    data = json.dumps(others).encode()
    stray = hashlib.md5(data, usedforsecurity=False).hexdigest() + ".dir"
    story.cache.put(stray, data)
    assert {Path(each.path).name for each in gc(open_registry(root))} == {stray[2:]}
    value = story.objects("1.0.0")[""]
    if fate == "lost":
        story.cache.remove(value)
    else:
        story.cache.put(value, story.cache.all()[value].replace(oid.encode(), b"0" * 32))
    gc(open_registry(root), apply=True)
    assert oid in story.cache.sound()


def test_files_that_dvc_was_writing_go(story: Any) -> None:
    """As a killed `dvc add` leaves them."""
    left = story.root / ".dvc/cache/files/md5/ab/.0123456789abcdefghij-_.tmp"
    left.parent.mkdir(parents=True, exist_ok=True)
    left.write_bytes(b"12345")
    other = left.with_name(".notes.tmp")
    other.write_bytes(b"somebody's")
    registry = open_registry(story.root)
    (found,) = gc(registry)
    assert (found.kind, found.path, found.bytes) == ("temporary", str(left), 5)
    assert left.exists()
    assert gc(registry, apply=True) == [found]
    assert not left.exists()
    assert other.exists()


@pytest.mark.parametrize("how", ["outside", "inside"])
def test_a_cache_that_others_may_use_is_left_alone(story: Any, tmp_path: Path, how: str) -> None:
    cache = story.root / ".dvc/cache"
    manifest = story.objects("1.0.0")["manifest.json"]
    place = story.root / "own" if how == "inside" else tmp_path / "shared"
    shutil.move(cache, place)
    config = story.root / ".dvc/config"
    config.write_text(f"{config.read_text()}[cache]\n    dir = {place}\n")
    git(story.root, "commit", "-qam", "A cache elsewhere", "--allow-empty")
    left = place / "files/md5/ab/.0123456789abcdefghij-_.tmp"
    left.parent.mkdir(parents=True, exist_ok=True)
    left.write_bytes(b"12345")
    # A build that nothing here refers to, as the release of another repository is.
    data = json.dumps([{"md5": manifest, "relpath": "manifest.json"}]).encode()
    name = hashlib.md5(data, usedforsecurity=False).hexdigest() + ".dir"
    stray = place / "files/md5" / name[:2] / name[2:]
    stray.parent.mkdir(parents=True, exist_ok=True)
    stray.write_bytes(data)
    notes = Watcher()
    kinds = [each.kind for each in gc(open_registry(story.root), apply=True, progress=notes)]
    if how == "inside":
        assert kinds == ["temporary", "dvc"]
        assert notes.notes == []
    else:
        assert kinds == []
        assert left.exists()
        assert stray.exists()
        assert [str(place.resolve()) in each for each in notes.notes] == [True]


def test_the_command(story: Any, capsys: pytest.CaptureFixture[str]) -> None:
    other = with_copy(story)
    config = other.root / ".dvc/config"
    config.write_text(config.read_text().replace("remote = store\n", ""))  # no default
    options = ["--apply", "--remote", "store", "--json"]
    assert main(["-C", str(other.root), "gc", *options]) == 0
    (found,) = json.loads(capsys.readouterr().out)["items"]
    assert (found["kind"], found["verified"]) == ("version", len(story.objects("1.0.0")))

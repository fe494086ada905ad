"""`pull` brings the released bytes from wherever one place still has them."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

pytest.importorskip("dvc", reason="the extra `dvc` is not installed")

from git_support import git
from tests_support import tree

from tfrecreg.builtin.dvc.transfer import pull, pull_needed, push
from tfrecreg.cli.main import main
from tfrecreg.core.check.run import check
from tfrecreg.core.registry.absence import named_hash
from tfrecreg.core.registry.manifest import parse_manifest, render_manifest, seal
from tfrecreg.core.registry.registry import Yank, append_yank, open_registry
from tfrecreg.core.values.errors import FailureError, RefusedError, UsageError
from tfrecreg.core.values.reference import parse_version

SHARD = "digits-test.tfrecord-00000-of-00002"
OTHER = "digits-train.tfrecord-00001-of-00002"


def expect_clean(root: Path, reference: str) -> None:
    (report,) = check([reference], registry=str(root))
    assert report.status == "pass"


def test_all_of_it_is_fetched_and_hashed(placed: Any) -> None:
    push(open_registry(placed.root))
    other = placed.elsewhere()
    found = pull(open_registry(other.root), "digits@1.0.0")
    objects = placed.objects("1.0.0")
    assert (found.fetched, found.verified) == (len(objects) - 1, len(objects) - 1)
    assert other.cache.sound() == {oid: placed.remote.sound()[oid] for oid in objects.values()}
    expect_clean(other.root, "digits@1.0.0")
    again = pull(open_registry(other.root), "digits@1.0.0")
    assert (again.fetched, again.files, again.verified) == (0, 0, found.verified)


@pytest.mark.parametrize("path", [SHARD, ""])
def test_a_damaged_object_of_the_cache_is_fetched_again(story: Any, path: str) -> None:
    registry = open_registry(story.root)
    push(registry)
    before = story.cache.sound()
    oid = story.objects("1.0.0")[path]
    story.cache.put(oid, before[oid].swapcase())
    assert pull(registry, "digits@1.0.0").fetched == (1 if path else 0)
    assert story.cache.all() == before
    expect_clean(story.root, "digits@1.0.0")


def test_shards_beside_the_manifest_of_another_release_are_refused(
    story: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """DVC's list of the files of 2.0.0 names the manifest of 1.0.0."""
    push(open_registry(story.root))
    path = story.root / "registry/digits/2.0.0/manifest.json"
    found = parse_manifest(path.read_bytes(), "it")
    objects = story.objects("2.0.0")
    other = story.objects("1.0.0")["manifest.json"]
    listed = story.cache.sound()[objects[""]].replace(
        objects["manifest.json"].encode(), other.encode()
    )
    oid = f"{hashlib.md5(listed).hexdigest()}.dir"
    story.cache.put(oid, listed)
    changed = replace(found, release=replace(found.release, dvc=oid))
    path.write_bytes(render_manifest(seal(changed)))
    for folder in ("data", "versions"):
        shutil.rmtree(story.root / folder, ignore_errors=True)
    assert main(["-C", str(story.root), "pull", "digits@2.0.0"]) == 1
    message = "every copy of `manifest.json` in DVC differs from the release `digits@2.0.0`"
    assert message in capsys.readouterr().err
    assert not list(story.root.rglob("*.tfrecord-*"))


def test_each_place_gives_what_it_has(story: Any) -> None:
    """The build has one shard, the remote another, and the cache nothing."""
    registry = open_registry(story.root)
    push(registry)
    before = tree(story.root / "data/digits")
    objects = story.objects("2.0.0")
    story.remote.remove(objects[SHARD])
    shutil.rmtree(story.root / ".dvc/cache")
    path = story.root / "data/digits" / OTHER
    path.chmod(0o644)
    path.write_bytes(b"damaged")
    path.with_name("previews").symlink_to("/mnt/previews")
    assert pull(registry, "digits@2.0.0").folder == "data/digits"
    assert tree(story.root / "data/digits") == before
    assert path.with_name("previews").readlink() == Path("/mnt/previews")
    assert push(registry, ["digits@2.0.0"]).objects == 1


@pytest.mark.parametrize("path", ["manifest.json", ""])
def test_what_the_remote_lost_is_named(story: Any, path: str) -> None:
    push(open_registry(story.root))
    oid = story.objects("1.0.0")[path]
    story.remote.remove(oid)
    other = story.elsewhere()
    with pytest.raises(FailureError) as caught:
        pull(open_registry(other.root), "digits@1.0.0")
    what = f"`{path}`" if path else "DVC's list of the files"
    assert caught.value.message == (
        f"the remote lacks {what} of `digits@1.0.0`, and this machine has no intact copy"
    )
    assert caught.value.hint == (
        "`tfrecreg repair digits@1.0.0` rebuilds it here; "
        "`tfrecreg push digits@1.0.0` sends it from a machine that has it"
    )
    assert not (other.root / "versions/digits").exists()
    assert not list(other.root.rglob("*.tmp"))


def test_damaged_bytes_of_the_remote_stay_there(placed: Any) -> None:
    push(open_registry(placed.root))
    oid = placed.objects("1.0.0")[SHARD]
    placed.remote.put(oid, placed.remote.all()[oid].swapcase())
    other = placed.elsewhere()
    with pytest.raises(RefusedError, match=f"`{SHARD}` of `digits@1.0.0` is damaged in the remote"):
        pull(open_registry(other.root), "digits@1.0.0")
    assert oid not in other.cache.all()
    push(open_registry(placed.root), repair=True)
    pull(open_registry(other.root), "digits@1.0.0")
    expect_clean(other.root, "digits@1.0.0")


def test_without_a_remote_what_lacks_is_a_usage_error(story: Any) -> None:
    (story.root / ".dvc/config").write_text("")
    story.cache.remove(story.objects("1.0.0")[SHARD])
    with pytest.raises(UsageError, match="DVC has no remote to push to or fetch from"):
        pull(open_registry(story.root), "digits@1.0.0")


@pytest.mark.medium
def test_a_remote_that_refuses_is_not_a_loss(story: Any) -> None:
    config = story.root / ".dvc/config"
    config.write_text(config.read_text().replace("url = /", "url = s3://no-such-bucket/"))
    pytest.importorskip("dvc_s3", reason="DVC's support of S3 is not installed")
    story.cache.remove(story.objects("1.0.0")[SHARD])
    nobody = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_MAX_ATTEMPTS": "1"}
    keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_DEFAULT_REGION": "x"}
    with (
        patch.dict(os.environ, {**nobody, **keys}),
        pytest.raises(FailureError, match="DVC refused: "),
    ):
        pull(open_registry(story.root), "digits@1.0.0")


def test_the_command(story: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-C", str(story.root), "push"]) == 0
    other = story.elsewhere()
    capsys.readouterr()
    assert main(["-C", str(other.root), "pull", "digits@1.0.0", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["releases"]
    count = len(story.objects("1.0.0")) - 1
    assert (found["files"], found["verified"], found["fetched"]) == (count, count, count)


def test_a_clone_gets_the_build_and_the_newest_release(
    story: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    push(open_registry(story.root))
    other = story.elsewhere()
    (found,) = pull_needed(open_registry(other.root))
    assert (found.name, found.folder) == ("digits@2.0.0", "data/digits")
    assert tree(other.root / "data/digits") == tree(story.root / "data/digits")
    expect_clean(other.root, "digits")
    (again,) = pull_needed(open_registry(other.root))
    assert (again.folder, again.files) == ("data/digits", 0)
    assert main(["-C", str(other.root), "pull"]) == 0
    assert capsys.readouterr().out == "digits@2.0.0 is in data/digits: already here\n"


def test_a_clone_of_an_older_commit_gets_its_build_and_the_newest_release(story: Any) -> None:
    push(open_registry(story.root))
    other = story.elsewhere()
    pointer = git(other.root, "show", "HEAD~2:data/digits.dvc")
    (other.root / "data/digits.dvc").write_text(pointer)
    first, second = pull_needed(open_registry(other.root))
    assert (first.name, first.folder) == ("digits@1.0.0", "data/digits")
    assert (second.name, second.folder) == ("digits@2.0.0", "versions/digits/2.0.0")
    expect_clean(other.root, "digits@1.0.0")
    expect_clean(other.root, "digits@2.0.0")


def test_a_build_of_a_pipeline_is_named_by_its_lock_file(story: Any) -> None:
    push(open_registry(story.root))
    other = story.elsewhere()
    value = named_hash(str(other.root), "data/digits")
    (other.root / "data/digits.dvc").unlink()
    out = f"    - path: data/digits\n      hash: md5\n      md5: {value}\n"
    lock = f"schema: '2.0'\nstages:\n  build-digits:\n    cmd: build\n    outs:\n{out}"
    (other.root / "dvc.lock").write_text(lock)
    (found,) = pull_needed(open_registry(other.root))
    assert (found.name, found.folder) == ("digits@2.0.0", "data/digits")
    assert tree(other.root / "data/digits") == tree(story.root / "data/digits")
    shutil.rmtree(other.root / "data/digits")
    (other.root / "dvc.lock").write_text(lock.replace("data/digits", "data/others"))
    (found,) = pull_needed(open_registry(other.root))
    assert found.folder == "versions/digits/2.0.0"


def test_a_build_that_is_here_is_not_replaced(story: Any) -> None:
    (story.root / "data/digits" / SHARD).unlink()
    pointer = git(story.root, "show", "HEAD~2:data/digits.dvc")
    (story.root / "data/digits.dvc").write_text(pointer)
    (story.root / "data/digits/manifest.json").unlink()
    before = tree(story.root / "data/digits")
    (found,) = pull_needed(open_registry(story.root))
    assert (found.name, found.folder) == ("digits@2.0.0", "versions/digits/2.0.0")
    assert tree(story.root / "data/digits") == before


def test_a_yanked_release_is_not_needed(story: Any) -> None:
    registry = open_registry(story.root)
    yank = Yank(by="a", created="2026-01-01T00:00:00Z", reason="mixed up")
    data = append_yank(registry.dataset("digits"), parse_version("2.0.0"), yank)
    (story.root / "registry/digits/2.0.0.yanks.jsonl").write_bytes(data)
    (found,) = pull_needed(registry)
    assert (found.name, found.folder) == ("digits@1.0.0", "versions/digits/1.0.0")


@pytest.mark.parametrize("arguments", [(), ("--json",)])
def test_what_dvc_does_not_keep_is_not_pulled(
    digits_registry: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    before = tree(digits_registry)
    assert main(["-C", str(digits_registry), "pull", *arguments]) == 0
    out = capsys.readouterr().out
    if arguments:
        assert json.loads(out)["releases"] == []
    else:
        assert out == "nothing to pull: DVC has no release, or only yanked ones\n"
    assert tree(digits_registry) == before

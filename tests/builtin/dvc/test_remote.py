"""Releases go to a real DVC remote and come back; a flipped bit in between is found."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("dvc", reason="the extra `dvc` is not installed")

from git_support import git
from remote_support import made
from tests_support import flip, tree

from tfrecreg.builtin.dvc import dvc
from tfrecreg.builtin.dvc.garbage import gc
from tfrecreg.builtin.dvc.transfer import pull, push
from tfrecreg.builtin.python_data.build import build
from tfrecreg.builtin.releases.release import ReleaseRequest, release
from tfrecreg.cli.digits import write_digits
from tfrecreg.cli.main import main
from tfrecreg.core.build.request import BuildRequest
from tfrecreg.core.check.run import check
from tfrecreg.core.registry.init import init
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import ManifestError, UsageError


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A git repository with two releases and a DVC remote that has none."""
    folder = tmp_path_factory.mktemp("released")
    root = folder / "registry"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    init(root)
    url = folder / "remote"
    subprocess.run(
        [sys.executable, "-m", "dvc", "remote", "add", "-q", "-d", "store", str(url)],
        cwd=root,
        check=True,
    )
    made(root, 1, "1.0.0")
    made(root, 2, "2.0.0")
    return folder


@pytest.fixture
def root(released: Path, tmp_path: Path) -> Path:
    shutil.copytree(released, tmp_path / "story", symlinks=True)
    root = tmp_path / "story/registry"
    config = root / ".dvc/config"
    config.write_text(config.read_text().replace(str(released), str(tmp_path / "story")))
    git(root, "commit", "-qam", "The remote of this copy")
    return root


def cloned(root: Path) -> Path:
    """The repository on another machine: what git has, and nothing else."""
    other = root.with_name("clone")
    git(root, "commit", "-qam", "remote", "--allow-empty")
    git(root.parent, "clone", "-q", str(root), str(other))
    return other


def objects(root: Path) -> dict[str, bytes]:
    return tree(root / ".dvc/cache/files/md5")


def clean(root: Path, reference: str) -> bool:
    (report,) = check([reference], registry=str(root))
    return report.status == "pass"


def test_what_was_pushed_is_pulled_elsewhere_byte_for_byte(root: Path) -> None:
    registry = open_registry(root)
    result = push(registry)
    assert result.releases == ("digits@1.0.0", "digits@2.0.0")
    assert result.objects > 10
    assert push(registry, ["digits@1.0.0"]).objects == 0
    other = cloned(root)
    pulled = pull(open_registry(other), "digits@1.0.0")
    assert pulled.folder == "versions/digits/1.0.0"
    assert pulled.files == len(
        [path for path in (other / pulled.folder).rglob("*") if path.is_file()]
    )
    assert clean(other, "digits@1.0.0")
    again = pull(open_registry(other), "digits@1.0.0")
    assert (again.files, again.folder) == (0, pulled.folder)


def test_without_a_remote_the_cache_will_do(root: Path) -> None:
    (root / ".dvc/config").write_text("")
    assert pull(open_registry(root), "digits@1.0.0").files > 5
    assert clean(root, "digits@1.0.0")


def rot(path: Path, at: int) -> None:
    """Flip a bit as a disk does: the file's times and permissions are what they were."""
    status = path.stat()
    path.chmod(0o644)
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    path.chmod(status.st_mode)


def test_here_already_is_not_said_of_a_damaged_folder(root: Path) -> None:
    registry = open_registry(root)
    shard = (
        registry.dataset("digits")
        .release_manifest(registry.dataset("digits").versions[1])
        .shards[0]
    )
    path = root / "data/digits" / shard.path
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.unlink()  # it may be a link to the cache
    path.write_bytes(data)
    (root / "data/digits/notes.txt").write_text("somebody's")
    result = pull(registry, "digits@2.0.0")
    assert (result.folder, result.files > 5) == ("data/digits", True)
    assert not (root / "versions/digits/2.0.0").exists()
    assert (root / "data/digits/notes.txt").read_text() == "somebody's"
    (root / "data/digits/notes.txt").unlink()
    assert clean(root, "digits@2.0.0")
    assert pull(registry, "digits@2.0.0").files == 0


@pytest.mark.medium
def test_an_object_with_other_bytes_than_its_name_says_is_added_again(root: Path) -> None:
    registry = open_registry(root)
    raw = root.with_name("raw3")
    write_digits(LocalStorage(raw), train=30, test=5, seed=3)
    request = BuildRequest(name="digits", source="mnist", raw=str(raw))
    manifest = build(registry, request).manifest
    _, files = dvc.keep(str(root), "data/digits", lambda: None)
    rot(Path(files[manifest.shards[0].path]), 200)
    build(registry, request)
    release(registry, ReleaseRequest(name="digits", version="3.0.0"))
    shutil.rmtree(root / "data/digits")
    pull(registry, "digits@3.0.0")
    assert clean(root, "digits@3.0.0")


@pytest.mark.slow
def test_gc_keeps_what_a_build_links_to(root: Path) -> None:
    """Where DVC puts links into builds, a build that no pointer names any more needs its cache."""
    run = {"cwd": root, "check": True, "capture_output": True}
    subprocess.run([sys.executable, "-m", "dvc", "config", "cache.type", "symlink"], **run)
    registry = open_registry(root)
    raw = root.with_name("raw3")
    write_digits(LocalStorage(raw), train=30, test=5, seed=3)
    build(registry, BuildRequest(name="digits", source="mnist", raw=str(raw)))
    before = tree(root / "data/digits")
    subprocess.run([sys.executable, "-m", "dvc", "add", "-q", "data/digits"], **run)
    assert any(path.is_symlink() for path in (root / "data/digits").iterdir())
    git(root, "checkout", "-q", "--", "data/digits.dvc")
    gc(registry, apply=True)
    assert tree(root / "data/digits") == before


@pytest.mark.slow
def test_dvc_checks_out_a_flipped_bit_and_check_names_its_place(root: Path, capsys) -> None:
    registry = open_registry(root)
    size = (
        registry.dataset("digits")
        .release_manifest(registry.dataset("digits").versions[1])
        .shards[0]
        .bytes
    )
    for path in (root / ".dvc/cache").rglob("*"):
        if path.is_file() and path.stat().st_size == size:
            rot(path, 200)
    shutil.rmtree(root / "data/digits")
    run = {"cwd": root, "check": True, "capture_output": True, "text": True}
    subprocess.run([sys.executable, "-m", "dvc", "checkout", "-q"], **run)
    told = subprocess.run([sys.executable, "-m", "dvc", "status"], **run).stdout
    assert "up to date" in told
    (report,) = check(["digits"], registry=str(root))
    (finding,) = [each for each in report.findings if each.code == "CRC002"]
    (place,) = finding.locations
    assert (place.shard, place.record, place.offset) == (
        "digits-test.tfrecord-00000-of-00002",
        0,
        0,
    )
    assert main(["-C", str(root), "check", "digits"]) == 1
    told = " ".join(capsys.readouterr().out.split())
    assert "error CRC002 data-checksum" in told
    assert f"{place.shard}, record 0, offset 0" in told


@pytest.mark.medium
def test_gc_lists_first_and_removes_what_nothing_refers_to(root: Path) -> None:
    registry = open_registry(root)
    before = tree(root)
    assert gc(registry) == []
    (root / ".tfrecreg/stage/release-digits-9.0.0-abcd").mkdir(parents=True)
    (root / ".tfrecreg/stage/release-digits-9.0.0-abcd/x").write_bytes(b"12345")
    kept = objects(root)
    git(root, "checkout", "-q", "-b", "trial")
    made(root, 3, "3.0.0")
    git(root, "checkout", "-q", "main")
    subprocess.run(
        [sys.executable, "-m", "dvc", "checkout", "-q"], cwd=root, check=True, capture_output=True
    )
    pull(registry, "digits@1.0.0")
    push(registry)
    found = gc(registry)
    assert {each.kind for each in found} == {"stage", "version"}
    git(root, "branch", "-qD", "trial")
    git(root, "reflog", "expire", "--expire=now", "--all")
    found = gc(registry)
    assert {each.kind for each in found} == {"stage", "version", "dvc", "index"}
    assert [each.bytes for each in found if each.kind == "stage"] == [5]
    assert gc(registry) == found
    assert gc(registry, apply=True) == found
    assert gc(registry) == []
    assert objects(root) == kept
    after = tree(root)
    mine = [name for name in before if name.startswith(("data/", "registry/", "schemas/"))]
    assert {name: after[name] for name in mine} == {name: before[name] for name in mine}


@pytest.mark.medium
def test_gc_leaves_what_others_put_under_dvc(root: Path) -> None:
    other = root / "others"
    other.mkdir()
    (other / "a").write_bytes(b"somebody's")
    subprocess.run(
        [sys.executable, "-m", "dvc", "add", "-q", "others"],
        cwd=root,
        check=True,
        capture_output=True,
    )
    kept = objects(root)
    (root / "others.dvc").unlink()
    gc(open_registry(root), apply=True)
    assert objects(root) == kept


def test_gc_removes_nothing_while_a_manifest_cannot_be_read(root: Path) -> None:
    stage = root / ".tfrecreg/stage/release-digits-9.0.0-abcd"
    stage.mkdir(parents=True)
    flip(root / "registry/digits/1.0.0/manifest.json", 300)
    with pytest.raises(ManifestError):
        gc(open_registry(root), apply=True)
    assert stage.exists()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["push", "digits@3.0.0"], 2, "no release `digits@3.0.0`"),
        (["push", "nothing"], 2, "no dataset `nothing`"),
        (["push", "--remote", "moon"], 2, "DVC has no remote `moon`"),
        (["pull", "nothing"], 2, "no dataset `nothing`"),
        (["pull", "digits@9.0.0"], 2, "no release `digits@9.0.0`"),
    ],
)
def test_errors_are_one_line_with_a_hint(root, arguments, code, message, capsys) -> None:
    assert main(["-C", str(root), *arguments]) == code
    error = capsys.readouterr().err
    assert message in error
    assert "hint:" in error


def test_the_name_of_a_dataset_brings_its_latest_release(root, capsys) -> None:
    assert main(["-C", str(root), "push", "digits"]) == 0
    shutil.rmtree(root / "data/digits")
    assert main(["-C", str(root), "pull", "digits", "--json"]) == 0
    (brought,) = json.loads(capsys.readouterr().out.partition("\n")[2])["releases"]
    assert brought["name"] == f"digits@{open_registry(root).dataset('digits').versions[-1]}"
    (report,) = check([brought["name"]], registry=root)
    assert report.status == "pass"


def test_outside_a_dvc_repository_nothing_is_kept_to_push(tmp_path: Path) -> None:
    init(tmp_path, with_dvc=False)
    with pytest.raises(UsageError, match="no release is stored in DVC"):
        push(open_registry(tmp_path))


@pytest.fixture(scope="module")
def pulled(released: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    story = shutil.copytree(released, tmp_path_factory.mktemp("pulled") / "s", symlinks=True)
    config = story / "registry/.dvc/config"
    config.write_text(config.read_text().replace(str(released), str(story)))
    push(open_registry(story / "registry"), ["digits@2.0.0"])
    other = cloned(story / "registry")
    subprocess.run([sys.executable, "-m", "dvc", "pull", "-q"], cwd=other, check=True)
    assert not (other / "versions").exists()
    assert not (other / ".tfrecreg").exists()
    return other


LOST = "2 examples of the split `train` are gone; 28 examples of the split `train` were changed"


class TestAfterDvcPull:
    """A clone whose `data/digits` came by `dvc pull`: there is no copy in `versions/`, and no
    index is kept.
    """

    @pytest.fixture
    def clone(self, pulled: Path, tmp_path: Path) -> Path:
        return Path(shutil.copytree(pulled, tmp_path / "clone", symlinks=True))

    def rebuild(self, clone: Path) -> None:
        """Build from raw data that have lost images."""
        raw = clone.with_name("fewer")
        write_digits(LocalStorage(raw), train=28, test=5, seed=2)
        request = BuildRequest(name="digits", raw=str(raw))
        build(open_registry(clone), request)

    def reason(self, clone: Path) -> str:
        done = release(open_registry(clone), ReleaseRequest(name="digits"))
        assert str(done.version) == "3.0.0"
        assert done.change.counts is not None
        return "; ".join(done.change.reasons)

    @pytest.mark.medium
    def test_the_next_release_counts_what_was_lost(self, clone: Path) -> None:
        self.rebuild(clone)
        assert self.reason(clone) == f"{LOST} in `image/encoded`"

    def test_indexes_in_the_cache_of_dvc_will_do(self, clone: Path) -> None:
        self.rebuild(clone)
        shutil.rmtree(clone / ".tfrecreg/cache/index", ignore_errors=True)
        assert self.reason(clone) == f"{LOST} in `image/encoded`"

    def test_indexes_will_do_that_nobody_else_has(self, clone: Path) -> None:
        shutil.rmtree(clone / ".dvc/cache")
        self.rebuild(clone)
        assert self.reason(clone).startswith(
            f"{LOST}; it is unknown whether they only gained features"
        )


def test_a_remote_without_the_release_says_who_has_to_push(root, capsys) -> None:
    shutil.rmtree(root / ".dvc/cache")
    assert main(["-C", str(root), "pull", "digits@1.0.0"]) == 3
    assert "tfrecreg push" in capsys.readouterr().err

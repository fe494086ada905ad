"""A refused transaction changes nothing, and a removal leaves files that are in use."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from git_support import commit, git, start
from tests_support import flip, tree

from tfrecreg.builtin.dvc.garbage import gc
from tfrecreg.builtin.python_data.build import build
from tfrecreg.builtin.releases.release import ReleaseRequest, release
from tfrecreg.builtin.releases.tag import yank
from tfrecreg.cli.digits import write_digits
from tfrecreg.cli.main import main
from tfrecreg.core.build.request import BuildRequest
from tfrecreg.core.registry.init import init
from tfrecreg.core.registry.lock import copy_unless_read
from tfrecreg.core.registry.registry import Registry, open_registry
from tfrecreg.core.registry.transaction import removal, transaction
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import ConflictError, StorageError, UsageError


def built(root: Path, seed: int) -> Registry:
    raw = root.with_name(f"raw{seed}")
    write_digits(LocalStorage(raw), train=20, test=5, seed=seed)
    registry = open_registry(root)
    build(registry, BuildRequest(name="digits", source="mnist", raw=str(raw)))
    return registry


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A registry without DVC, with the release 1.0.0 of `digits`."""
    root = tmp_path / "root"
    init(root, with_dvc=False)
    release(built(root, 1), ReleaseRequest(name="digits", version="1.0.0"))
    return root


def first_shard(root: Path) -> Path:
    return next((root / "data/digits").glob("*.tfrecord-*"))


def waive(root: Path, codes: str) -> None:
    with (root / "tfrecreg.toml").open("a") as file:
        file.write(
            f'\n[[waivers]]\ncode = "{codes}"\nreason = "known"\nowner = "ada"\n'
            "expires = 2099-01-01\n"
        )


class TestRelease:
    @pytest.mark.parametrize("damage", ["flip", "remove"])
    def test_what_a_waiver_covers_is_not_released_all_the_same(
        self, root: Path, damage: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        built(root, 2)
        shard = first_shard(root)
        if damage == "flip":
            flip(shard, 100)
            waive(root, "CRC*")
        else:
            shard.unlink()
            waive(root, "SHD*")
        before = tree(root, ignore=(".tfrecreg",))
        assert main(["-C", str(root), "release", "digits", "--version", "2.0.0"]) == 1
        told = capsys.readouterr().err
        assert "nothing was released: the bytes of `digits` do not match the manifest" in told
        assert f"`{shard.name}` " in told
        assert "hint: tfrecreg repair digits\n" in told
        assert tree(root, ignore=(".tfrecreg",)) == before
        assert not (root / ".tfrecreg/stage/digits").exists()

    @pytest.mark.parametrize("arguments", [("--bump", "auto"), ("--version", "1.0.0")])
    def test_nothing_to_do_is_not_said_of_a_damaged_build(
        self, root: Path, arguments: tuple[str, str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        first_shard(root).unlink()
        assert main(["-C", str(root), "release", "digits", *arguments]) == 1
        told = capsys.readouterr().err
        assert "`digits@1.0.0` exists, but the files in `data/digits` do not match the" in told
        assert "is missing" in told
        assert "hint: tfrecreg repair digits\n" in told

    def test_nothing_to_do_is_not_said_of_a_withdrawn_release(self, root: Path) -> None:
        registry = open_registry(root)
        yank(registry, "digits@1.0.0", "labels are wrong")
        with pytest.raises(ConflictError, match="has this content, but was yanked: labels"):
            release(registry, ReleaseRequest(name="digits"))

    @pytest.mark.medium
    def test_the_only_bytes_of_another_branch_are_not_replaced(self, root: Path) -> None:
        start(root)
        commit(root, "1.0.0")
        git(root, "switch", "--quiet", "--create", "theirs")
        release(built(root, 2), ReleaseRequest(name="digits", version="2.0.0"))
        kept = tree(root / "versions/digits/2.0.0")
        commit(root, "2.0.0 of theirs")
        git(root, "switch", "--quiet", "main")
        assert not (root / "registry/digits/2.0.0").exists()
        registry = built(root, 3)
        with pytest.raises(ConflictError, match=r"holds the bytes of another `digits@2\.0\.0`"):
            release(registry, ReleaseRequest(name="digits", version="2.0.0"))
        assert tree(root / "versions/digits/2.0.0") == kept
        assert not (root / "registry/digits/2.0.0").exists()
        assert str(release(registry, ReleaseRequest(name="digits", version="3.0.0")).version)

    def test_bytes_of_a_release_that_was_never_committed_to_git_give_way(self, root: Path) -> None:
        release(built(root, 2), ReleaseRequest(name="digits", version="2.0.0"))
        shutil.rmtree(root / "registry/digits/2.0.0")  # a release that was killed left its bytes
        registry = built(root, 3)
        release(registry, ReleaseRequest(name="digits", version="2.0.0"))
        now = tree(root / "data/digits")
        assert tree(root / "versions/digits/2.0.0") == now


def test_a_name_that_no_dataset_has_is_refused_before_anything_is_made(root: Path) -> None:
    before = tree(root)
    with pytest.raises(UsageError), transaction(open_registry(root).dataset("no name")):
        pass
    assert tree(root) == before


def fail_in_the_middle(registry: Registry) -> None:
    with transaction(registry.dataset("digits")) as change, change.stage("trial") as staged:
        with staged.create("a/b") as writer:
            writer.write(b"x")
        raise KeyError


def test_what_is_staged_is_gone_behind_the_block_whatever_happens(root: Path) -> None:
    with pytest.raises(KeyError):
        fail_in_the_middle(open_registry(root))
    assert not (root / ".tfrecreg/stage/digits").exists()


def test_the_next_command_clears_away_what_a_killed_one_staged(root: Path) -> None:
    left = root / ".tfrecreg/stage/digits"
    for path in ("adopt/build/x", "swap/data-digits/manifest.json", "plan-0123/build/x"):
        (left / path).parent.mkdir(parents=True)
        (left / path).write_bytes(b"left")
    with transaction(open_registry(root).dataset("digits")):
        # A build with the same plan goes on from there.
        assert [path.name for path in left.iterdir()] == ["plan-0123"]


READER = """
import sys
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.registry.data import resolve
resolve(open_registry(sys.argv[1]), "digits@1.0.0").storage()
print("reading", flush=True)
sys.stdin.read()
"""


def test_a_copy_that_another_process_reads_stays(root: Path) -> None:
    built(root, 2)
    registry = open_registry(root)
    command = [sys.executable, "-c", READER, str(root)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == b"reading\n"
        with copy_unless_read(registry, "versions/digits/1.0.0") as free:
            assert not free
        with removal(registry) as change:
            assert not change.remove_copy("versions/digits/1.0.0")
        assert (root / "versions/digits/1.0.0/manifest.json").exists()
        reader.communicate()
    with removal(registry) as change:
        assert change.remove_copy("versions/digits/1.0.0")
    assert not (root / "versions/digits/1.0.0").exists()


def test_files_that_killed_commands_were_writing_go_and_those_being_written_stay(
    root: Path,
) -> None:
    registry = open_registry(root)
    name = ".{}.0123456789abcdef.tmp"
    left = [
        "schemas/" + name.format("digits.pbtxt"),
        name.format("tfrecreg.toml"),
        "datasets/" + name.format("digits.toml"),
        "registry/digits/" + name.format("1.0.0.yanks.jsonl"),
        "data/digits/" + name.format("manifest.json"),
        ".tfrecreg/builds/" + name.format("digits.json"),
        ".tfrecreg/cache/checks/ab/" + name.format("cd.json"),
    ]
    for path in left:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(b"half")
    with LocalStorage(root).create("schemas/other.pbtxt") as writer:
        writer.write(b"whole")
        found = gc(registry)
        mine = [each.path for each in found if each.path not in left]
        assert len(mine) == 1  # it is listed: who holds it shows when it is to be removed
        assert sorted(each.path for each in found if each.path in left) == sorted(left)
        assert {each.kind for each in found} == {"temporary"}
        removed = gc(registry, apply=True)
        assert sorted(each.path for each in removed) == sorted(left)
    assert (root / "schemas/other.pbtxt").read_bytes() == b"whole"
    assert gc(registry) == []


def test_bytes_are_verified_where_they_are_staged(root: Path) -> None:
    registry = open_registry(root)
    manifest = registry.dataset("digits").build_manifest()
    assert manifest is not None
    before = tree(root / "data/digits")
    with transaction(registry.dataset("digits")) as change, change.stage("trial") as staged:
        for path, data in before.items():
            with staged.create(path) as writer:
                writer.write(data if path != manifest.shards[0].path else data[:-1])
        with pytest.raises(
            StorageError, match="were written for `data/digits` do not match the manifest"
        ):
            change.replace("data/digits", staged, manifest)
    assert tree(root / "data/digits") == before

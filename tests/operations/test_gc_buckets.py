"""`gc` of folders in buckets, over fsspec's file system in memory and real git."""

from __future__ import annotations

import json
import shutil
import subprocess
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from python_data_support import Notes

from tfrecreg.cli.main import main
from tfrecreg.errors import FailureError, ManifestError, StorageError, UsageError
from tfrecreg.operations.builds.data import build
from tfrecreg.operations.builds.settings import BuildRequest
from tfrecreg.operations.check.run import check
from tfrecreg.operations.demo.digits import write_digits
from tfrecreg.operations.init import init
from tfrecreg.operations.release import ReleaseRequest, release
from tfrecreg.operations.remote.garbage import gc
from tfrecreg.registry.locations import location_of
from tfrecreg.registry.registry import Registry, open_registry
from tfrecreg.storage.local import LocalStorage
from tfrecreg.storage.remote import RemoteStorage

CONFIG = """\
source = "mnist"
raw = "raw{seed}"
shards = 2
data = "memory://lake/data"
"""


def git(root: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments]
    return subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout


def made(registry: Registry, seed: int, version: str = "") -> str:
    """Build and release other digits, and return the URL of the shards."""
    root = Path(registry.storage.root)
    if not (root / f"raw{seed}").exists():
        write_digits(LocalStorage(root / f"raw{seed}"), train=30, test=20, seed=seed)
    (root / "datasets").mkdir(exist_ok=True)
    (root / "datasets/digits.toml").write_text(CONFIG.format(seed=seed))
    registry = open_registry(root)
    build(registry, BuildRequest(name="digits"))
    if version:
        release(registry, ReleaseRequest(name="digits", version=version))
    url = location_of(registry, "data/digits")
    assert url is not None
    return url


@pytest.fixture
def registry(memory: Any, tmp_path: Path) -> Registry:
    """A registry in git, with nothing built."""
    del memory
    root = tmp_path / "registry"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    init(root, with_dvc=False)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "init")
    return open_registry(root)


def files(memory: Any, url: str) -> list[str]:
    """Everything in the folder of a build, and its receipts."""
    return [path for path in memory.find("/lake") if path.startswith(url.removeprefix("memory:/"))]


def age(memory: Any, days: int) -> None:
    """Make everything in the store older."""
    for path in memory.find("/lake"):
        memory.store[path].created = datetime.now(timezone.utc) - timedelta(days=days)


@pytest.mark.medium
def test_only_what_nothing_refers_to_goes(registry: Registry, memory: Any) -> None:
    released = made(registry, 1, "1.0.0")
    replaced = made(registry, 2)
    built = made(registry, 3)
    memory.pipe_file("/lake/data/digits/notes.txt", b"somebody's")
    memory.pipe_file("/lake/data/digits/other/notes.txt", b"somebody's")
    age(memory, 31)
    before = memory.find("/lake")
    assert gc(registry) == []
    found = gc(registry, buckets=True)
    assert [(each.kind, each.path) for each in found] == [("bucket", replaced)]
    assert memory.find("/lake") == before
    size = sum(memory.info(path)["size"] for path in files(memory, replaced))
    assert found[0].bytes == size > 0
    assert gc(registry, buckets=True, apply=True) == found
    assert files(memory, replaced) == []
    assert set(before) - set(memory.find("/lake")) == {
        path for path in before if path.startswith(replaced.removeprefix("memory:/"))
    }
    assert files(memory, released)
    assert files(memory, built)
    for reference in ("digits", "digits@1.0.0"):
        (report,) = check([reference], registry=registry)
        assert report.status == "pass"
    assert gc(registry, buckets=True) == []


def test_what_was_added_lately_stays(registry: Registry, memory: Any) -> None:
    replaced = made(registry, 1)
    made(registry, 2)
    notes = Notes()
    assert gc(registry, buckets=True, apply=True, progress=notes) == []
    (note,) = notes.notes
    assert note.startswith("1 folder that nothing here refers to is kept in buckets (")
    assert "changed in the last 30 days" in note
    assert [each.path for each in gc(registry, buckets=True, older_than=0)] == [replaced]
    # One shard added yesterday protects the folder.
    age(memory, 100)
    path = files(memory, replaced)[0]
    memory.store[path].created = datetime.now(timezone.utc) - timedelta(days=1)
    assert gc(registry, buckets=True) == []


def test_a_store_that_tells_no_times_keeps_everything(
    registry: Registry, memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(registry, 1)
    made(registry, 2)
    real = type(memory).find

    def find(self: Any, *arguments: Any, **options: Any) -> Any:
        found = real(self, *arguments, **options)
        if isinstance(found, dict):
            found = {
                path: {**{key: info[key] for key in info if key != "created"}, "ETag": path}
                for path, info in found.items()
            }
        return found

    monkeypatch.setattr(type(memory), "find", find)
    assert gc(registry, buckets=True, older_than=0) == []


def test_a_release_of_any_ref_is_kept(registry: Registry, memory: Any) -> None:
    root = Path(registry.storage.root)
    git(root, "checkout", "-q", "-b", "trial")
    released = made(registry, 1, "1.0.0")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "release")
    git(root, "checkout", "-q", "main")
    made(registry, 2)
    age(memory, 100)
    assert not (root / "registry/digits/1.0.0").exists()
    assert gc(registry, buckets=True, apply=True) == []
    git(root, "branch", "-qD", "trial")
    found = gc(registry, buckets=True)
    assert [each.path for each in found if each.kind == "bucket"] == [released]


@pytest.mark.medium
def test_releases_of_others_have_to_be_fetched(
    registry: Registry, memory: Any, tmp_path: Path
) -> None:
    root = Path(registry.storage.root)
    git(tmp_path, "init", "-q", "--bare", "-b", "main", "shared.git")
    git(root, "remote", "add", "origin", str(tmp_path / "shared.git"))
    git(root, "push", "-q", "origin", "main")
    git(tmp_path, "clone", "-q", "shared.git", "colleague")
    theirs = made(open_registry(tmp_path / "colleague"), 1, "1.0.0")
    git(tmp_path / "colleague", "checkout", "-q", "-b", "trial")
    git(tmp_path / "colleague", "add", "-A")
    git(tmp_path / "colleague", "commit", "-qm", "release")
    git(tmp_path / "colleague", "tag", "-a", "one", "-m", "one")
    git(tmp_path / "colleague", "push", "-q", "origin", "trial", "one")
    made(registry, 2)
    age(memory, 100)
    with pytest.raises(UsageError) as raised:
        gc(registry, buckets=True, apply=True)
    assert raised.value.message == (
        "the git remote `origin` has branches or tags that are not here, and their releases may "
        "refer to folders in buckets"
    )
    assert raised.value.hint is not None
    assert files(memory, theirs)
    subprocess.run(raised.value.hint, shell=True, cwd=root, check=True, capture_output=True)
    assert gc(registry, buckets=True, apply=True) == []
    # Commits of this clone alone are no obstacle.
    git(root, "commit", "-q", "--allow-empty", "-m", "ahead")
    assert gc(registry, buckets=True) == []
    git(root, "remote", "set-url", "origin", str(tmp_path / "gone.git"))
    with pytest.raises(FailureError, match="git refused"):
        gc(registry, buckets=True, apply=True)
    assert files(memory, theirs)


def test_a_damaged_location_removes_nothing(registry: Registry, memory: Any) -> None:
    replaced = made(registry, 1)
    made(registry, 2, "1.0.0")
    age(memory, 100)
    path = Path(registry.storage.root, "registry/digits/1.0.0/location.json")
    path.write_text("{}")
    with pytest.raises(ManifestError, match="does not say where the bytes are"):
        gc(registry, buckets=True, apply=True)
    assert files(memory, replaced)


def test_a_removal_that_was_cut_short_goes_on(
    registry: Registry, memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    replaced = made(registry, 1)
    made(registry, 2)
    age(memory, 100)
    memory.pipe_file(f"{replaced.removeprefix('memory:/')}.receipts/0.json", b"{}")
    age(memory, 100)
    real, removed = RemoteStorage.remove, list[str]()

    def remove(self: RemoteStorage, path: str) -> None:
        if len(removed) == 3:
            raise StorageError("cannot remove it", hint="none")
        removed.append(path)
        real(self, path)

    monkeypatch.setattr(RemoteStorage, "remove", remove)
    with pytest.raises(StorageError):
        gc(registry, buckets=True, apply=True)
    assert removed[0].endswith("/manifest.json")
    assert all(".receipts/" in path for path in removed[1:])  # these at once, in any order
    assert files(memory, replaced)
    monkeypatch.undo()
    assert [each.path for each in gc(registry, buckets=True, apply=True)] == [replaced]
    assert files(memory, replaced) == []


def test_a_folder_that_is_used_again_meanwhile_stays(
    registry: Registry, memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tfrecreg.operations.remote import bucket_folders, garbage

    replaced = made(registry, 1)
    made(registry, 2)
    age(memory, 100)

    def remove_folder(folder: bucket_folders.BucketFolder) -> bool:
        memory.pipe_file(f"{replaced.removeprefix('memory:/')}.receipts/new.json", b"{}")
        return bucket_folders.remove_folder(folder)

    monkeypatch.setattr(garbage, "remove_folder", remove_folder)
    notes = Notes()
    assert gc(registry, buckets=True, apply=True, progress=notes) == []
    assert notes.notes == [f"{replaced} is kept: it changed meanwhile"]
    assert files(memory, replaced)


def test_what_the_command_prints(
    registry: Registry, memory: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    replaced = made(registry, 1)
    made(registry, 2)
    age(memory, 100)
    root = registry.storage.root
    assert main(["-C", root, "gc", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["items"] == []
    assert main(["-C", root, "gc", "--buckets", "--older-than", "200", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["items"] == []
    assert main(["-C", root, "gc", "--buckets", "--json"]) == 0
    (item,) = json.loads(capsys.readouterr().out)["items"]
    assert (item["kind"], item["path"]) == ("bucket", replaced)
    assert main(["-C", root, "gc", "--buckets", "--older-than", "-1"]) == 2
    assert "-1 is not in the range" in capsys.readouterr().err
    assert main(["-C", root, "gc", "--buckets", "--apply"]) == 0
    assert "removed 1 thing" in capsys.readouterr().out
    assert files(memory, replaced) == []


def test_without_git_the_registry_alone_is_known(memory: Any, tmp_path: Path) -> None:
    init(tmp_path / "r", with_dvc=False)
    registry = open_registry(tmp_path / "r")
    replaced = made(registry, 1)
    released = made(registry, 2, "1.0.0")
    shutil.rmtree(tmp_path / "r/data/digits")
    age(memory, 100)
    assert [each.path for each in gc(registry, buckets=True)] == [replaced]
    assert files(memory, released)

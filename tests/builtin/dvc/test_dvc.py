"""DVC itself, in real git repositories: quiet, private, and one line when it refuses."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from git_support import git

pytest.importorskip("dvc", reason="the extra `dvc` is not installed")

from tfrecreg.builtin.dvc import dvc
from tfrecreg.core.values.errors import FailureError, UsageError

SITE_CACHE = Path("/var/tmp/dvc/repo")
"""Where DVC would leave pickles for everybody to write."""


def status(folder: Path) -> dict[str, str]:
    lines = git(folder, "status", "--porcelain", "--untracked-files=all").splitlines()
    return {line[3:]: line[:2].strip() for line in lines}


def variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}


def keep(root: str, folder: str) -> str:
    return dvc.keep(root, folder, lambda: None)[0]


def put_data(root: Path) -> Path:
    """A folder as `init` and `build` leave it."""
    folder = root / "data/mnist"
    (folder / "index").mkdir(parents=True)
    (folder / "shard").write_bytes(bytes(range(256)))
    (folder / "index/shard").write_bytes(b"index")
    (root / "data/.gitignore").write_text("/*/\n")
    (root / ".tfrecreg").mkdir()
    for name in (".gitignore", ".dvcignore"):
        (root / ".tfrecreg" / name).write_text("*\n")
    return folder


@pytest.fixture(autouse=True)
def nothing_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Iterator[None]:
    """Nothing is printed, no variable is left changed, and nothing is open to everybody."""
    monkeypatch.delenv("DVC_NO_ANALYTICS", raising=False)
    monkeypatch.setenv("DVC_SITE_CACHE_DIR", "/a/setting/of/the/user")
    before = variables()
    caches = set(SITE_CACHE.iterdir()) if SITE_CACHE.is_dir() else set()
    yield
    assert variables() == before
    assert (set(SITE_CACHE.iterdir()) if SITE_CACHE.is_dir() else set()) <= caches
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err == ""
    for path in tmp_path.rglob("*"):
        mode = path.lstat().st_mode
        assert stat.S_ISLNK(mode) or not mode & stat.S_IWOTH, path


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    folder.mkdir()
    git(folder, "init", "--quiet")
    return folder


def test_in_git_it_becomes_a_dvc_repository_and_the_folder_a_pointer(tree: Path) -> None:
    put_data(tree)
    assert not dvc.initialised(str(tree))
    dvc.initialise(str(tree))
    assert dvc.initialised(str(tree))
    value = keep(str(tree), "data/mnist")
    assert re.fullmatch(r"[0-9a-f]{32}\.dir", value)
    pointer = tree / dvc.pointer("data/mnist")
    assert pointer == tree / "data/mnist.dvc"
    assert value in pointer.read_text()
    changed = status(tree)
    assert {path for path in changed if path.startswith("data/")} == {
        "data/.gitignore",
        "data/mnist.dvc",
    }
    assert not any(path.startswith((".tfrecreg", ".dvc/tmp", ".dvc/cache")) for path in changed)
    # It never changes: branches that track different datasets do not meet in it.
    assert (tree / "data/.gitignore").read_text() == "/*/\n"
    assert "no_scm" not in (tree / ".dvc/config").read_text()


def test_in_a_folder_of_a_work_tree_it_is_a_subdirectory_repository(tree: Path) -> None:
    root = tree / "some/registry"
    put_data(root)
    dvc.initialise(str(root))
    assert (root / ".dvc/config").is_file()
    assert not (tree / ".dvc").exists()
    assert keep(str(root), "data/mnist").endswith(".dir")
    assert "some/registry/data/mnist.dvc" in status(tree)


def test_outside_git_it_does_without(tmp_path: Path) -> None:
    put_data(tmp_path)
    dvc.initialise(str(tmp_path))
    assert "no_scm = True" in (tmp_path / ".dvc/config").read_text()
    assert keep(str(tmp_path), "data/mnist").endswith(".dir")


def test_a_dvc_repository_above_is_used(tree: Path) -> None:
    dvc.initialise(str(tree))
    root = tree / "registry-root"
    put_data(root)
    assert dvc.initialised(str(root))
    assert keep(str(root), "data/mnist").endswith(".dir")
    assert (root / "data/mnist.dvc").is_file()
    assert (tree / ".dvc/cache/files").is_dir()


def test_a_dvc_repository_around_the_work_tree_does_not_count(tmp_path: Path) -> None:
    dvc.initialise(str(tmp_path))
    inner = tmp_path / "inner"
    inner.mkdir()
    assert dvc.initialised(str(inner))
    git(inner, "init", "--quiet")
    assert not dvc.initialised(str(inner))


def test_a_registry_behind_a_link_is_tracked(tree: Path, tmp_path: Path) -> None:
    root = tree / "registry-root"
    put_data(root)
    link = tmp_path / "link"
    link.symlink_to(root)
    dvc.initialise(str(link))
    assert keep(str(link), "data/mnist").endswith(".dir")
    assert (root / "data/mnist.dvc").is_file()


def test_its_state_is_private_and_made_private(tree: Path) -> None:
    put_data(tree)
    state = tree / ".tfrecreg/dvc"
    (state / "repo").mkdir(parents=True)
    (state / "repo").chmod(0o777)
    dvc.initialise(str(tree))
    keep(str(tree), "data/mnist")
    assert [oct(path.stat().st_mode & 0o777) for path in (state, state / "repo")] == ["0o700"] * 2
    assert list((state / "repo").iterdir())  # so DVC did use it


def test_what_dvc_refuses_is_one_line_and_the_command_that_shows_more(tree: Path) -> None:
    put_data(tree)
    dvc.initialise(str(tree))
    with pytest.raises(FailureError) as caught:
        keep(str(tree), "data/none")
    assert caught.value.message == "DVC refused: output 'data/none' does not exist"
    assert caught.value.hint == "`dvc add data/none` shows more"
    assert caught.value.exit_code == 3
    with pytest.raises(FailureError) as caught:
        dvc.initialise(str(tree))
    assert re.fullmatch(r"DVC refused: '.*\.dvc' exists\..*", caught.value.message)
    assert caught.value.hint == "`dvc init` shows more"


def test_looking_imports_nothing() -> None:
    code = (
        "import sys; from tfrecreg.builtin.dvc import dvc\n"
        "dvc.available(); dvc.initialised('.'); dvc.pointer('data/mnist')\n"
        "sys.exit('dvc' in sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


STAGE = "stages:\n  make:\n    cmd: 'true'\n    outs:\n    - data/mnist:\n        persist: true\n"


def test_the_hash_of_what_a_stage_makes_is_that_of_the_lock(tree: Path) -> None:
    folder = put_data(tree)
    dvc.initialise(str(tree))
    (tree / "dvc.yaml").write_text(STAGE)
    with pytest.raises(UsageError) as caught:
        keep(str(tree), "data/mnist")
    assert caught.value.message == (
        "`data/mnist` differs from what `dvc.lock` records for the stage `make`"
    )
    hint = "run `dvc repro make`, or keep the current data with `dvc commit make`"
    assert caught.value.hint == hint
    with dvc.opened(str(tree), "dvc commit") as repo:
        repo.commit(force=True)
    value = keep(str(tree), "data/mnist")
    assert f"md5: {value}" in (tree / "dvc.lock").read_text()
    assert dvc.tracked_hash((tree / "dvc.lock").read_bytes(), "dvc.lock", "data/mnist") == value
    # It is not added besides.
    assert not (tree / "data/mnist.dvc").exists()
    (folder / "shard").unlink()
    (folder / "shard").write_bytes(b"other")
    with pytest.raises(UsageError, match=r"differs from what `dvc\.lock` records"):
        keep(str(tree), "data/mnist")


def test_what_a_stage_made_and_the_cache_lost_is_told(tree: Path) -> None:
    put_data(tree)
    dvc.initialise(str(tree))
    (tree / "dvc.yaml").write_text(STAGE)
    with dvc.opened(str(tree), "dvc commit") as repo:
        repo.commit(force=True)
    value = keep(str(tree), "data/mnist")
    for cached in dvc.cached_files(str(tree), value).values():
        Path(cached).unlink()
    with pytest.raises(UsageError, match="output of the stage `make`: `dvc commit make`"):
        keep(str(tree), "data/mnist")


def test_locks_by_hard_links_are_refused(tree: Path) -> None:
    dvc.initialise(str(tree))
    (tree / ".dvc/config.local").write_text("[core]\n    hardlink_lock = true\n")
    with pytest.raises(UsageError, match="hardlink_lock"), dvc.locked(str(tree)):
        pass

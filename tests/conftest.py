"""What all tests share: quiet, reproducible, and away from the user's own settings."""

from __future__ import annotations

import gc
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from sweep_support import without_others

if TYPE_CHECKING:
    from browser_support import Browser

settings.register_profile(
    "tfrecreg",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("tfrecreg")

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
# As the command sets it: programs that the tests start import NumPy, and multiply no matrices.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Stores in place of a bucket: that of fsspec in memory, and those that tests make of it.
os.environ.setdefault("TFRECREG_REMOTE_PROTOCOLS", "memory,altering,older")

AS_BUILT = "as-built"

_FORKING = frozenset({"Child", "Deed", "apart", "in_child"})
"""Names that a module has whose tests fork this process, most of them a hundred times."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what another run tries of sweeps, and sort the others.

    Tests that fork come first: a fork takes longer when others have imported TensorFlow. Of all
    others, those of modules with few tests: they are the long ones. With a long test at the end,
    one process would work and the others wait.
    """
    kept = without_others(items)
    there = {*kept}
    config.hook.pytest_deselected(items=[each for each in items if each not in there])
    items[:] = kept
    tests = Counter(item.path for item in items)
    forking = {
        item.path
        for item in items
        if isinstance(item, pytest.Function) and _FORKING & vars(item.module).keys()
    }
    items.sort(key=lambda item: (item.path not in forking, tests[item.path]))


def pytest_collection_finish() -> None:
    """What was collected stays: a collector that looks at it again, in forks too, costs minutes."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def light_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spawned workers import the main module again: here pytest, which they do not need."""
    main = sys.modules["__main__"]
    monkeypatch.setattr(main, "__spec__", None)
    monkeypatch.delattr(main, "__file__", raising=False)


@pytest.fixture
def realdata() -> Path:
    """The folder of real datasets that `TFRECREG_TEST_DATA` names; skips where it is unset."""
    folder = os.environ.get("TFRECREG_TEST_DATA")
    if not folder:
        pytest.skip("TFRECREG_TEST_DATA is not set: no real datasets to test against")
    path = Path(folder)
    if not path.is_dir():
        pytest.fail(f"TFRECREG_TEST_DATA names no folder: {folder}")
    return path


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """An empty folder on another file system than `tmp_path`; skips where there is none."""
    for root in map(Path, ("/dev/shm", "/var/tmp")):
        if os.access(root, os.W_OK) and root.stat().st_dev != tmp_path.stat().st_dev:
            with tempfile.TemporaryDirectory(dir=root) as folder:
                yield Path(folder)
            return
    pytest.skip("there is no second file system here")


@pytest.fixture
def memory() -> Iterator[Any]:
    """The file system `memory://` of fsspec, empty."""
    fsspec = pytest.importorskip("fsspec", reason="the extra `remote` is not installed")
    system = fsspec.filesystem("memory")
    system.store.clear()
    system.pseudo_dirs[:] = [""]
    yield system
    system.store.clear()


@pytest.fixture(scope="session")
def digits_original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A registry to look at and not to change: the dataset `digits`, 200 images in the split
    `train` and 60 in `test`, two shards each, its raw data in `raw/`, released as 1.0.0 with its
    bytes in `versions/` and without DVC.
    """
    from tfrecreg.builtin.python_data.build import build
    from tfrecreg.builtin.releases.release import ReleaseRequest, release
    from tfrecreg.cli.digits import write_digits
    from tfrecreg.core.build.request import BuildRequest
    from tfrecreg.core.registry.init import init
    from tfrecreg.core.registry.registry import open_registry
    from tfrecreg.core.storage.local import LocalStorage
    from tfrecreg.core.values.shards import ShardPolicy

    root = tmp_path_factory.mktemp("digits") / "registry-root"
    write_digits(LocalStorage(root / "raw"), train=200, test=60, seed=1)
    init(root, with_dvc=False)
    policy = ShardPolicy(shards=2)
    request = BuildRequest(name="digits", source="mnist", raw=str(root / "raw"), policy=policy)
    build(open_registry(root), request)
    release(open_registry(root), ReleaseRequest(name="digits", version="1.0.0"))
    shutil.copytree(root, root.with_name(AS_BUILT))
    return root


@pytest.fixture
def digits_registry(digits_original: Path, tmp_path: Path) -> Path:
    """A copy of `digits_original` for one test, to do things to.

    It is as it was built: the cache of the original grows while tests look at it.
    """
    built = digits_original.with_name(AS_BUILT)
    return Path(shutil.copytree(built, tmp_path / "digits-registry"))


@pytest.fixture(scope="session")
def numbered(digits_original: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A registry with the builds `digits1`, `digits2` and `digits7`, of so many shards a split."""
    from tfrecreg.builtin.python_data.build import build
    from tfrecreg.core.build.request import BuildRequest
    from tfrecreg.core.registry.registry import open_registry
    from tfrecreg.core.values.shards import ShardPolicy

    root = tmp_path_factory.mktemp("numbered") / "registry"
    shutil.copytree(digits_original, root)
    registry = open_registry(root)
    for shards in (1, 2, 7):
        policy = ShardPolicy(shards=shards)
        build(
            registry,
            BuildRequest(
                name=f"digits{shards}", source="mnist", raw=str(root / "raw"), policy=policy
            ),
        )
    return root


@pytest.fixture
def pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[Callable[[Any], None]], str]:
    """``pipe(render)``: what a pipe that nobody gave a width receives."""
    from tfrecreg.core.terminal.console import stdout

    for name in ("COLUMNS", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)

    def run(render: Callable[[Any], None]) -> str:
        render(stdout())
        return capsys.readouterr().out

    return run


@pytest.fixture
def terminal() -> Callable[..., str]:
    """``terminal(render, width)``: what a terminal shows, without its colours."""
    from rich.console import Console

    def run(render: Callable[[Any], None], width: int, *, colour: bool = False) -> str:
        file = io.StringIO()
        console = Console(
            file=file,
            width=width,
            force_terminal=True,
            color_system="standard" if colour else None,
            highlight=False,
            markup=False,
            emoji=False,
            soft_wrap=True,
        )
        render(console)
        return file.getvalue()

    return run


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """A window of Chromium, which all tests of a process use; skips where there is none."""
    from browser_support import Browser

    browser = Browser()
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The script that finds what people with disabilities cannot use."""
    folder = tmp_path_factory.mktemp("axe")
    wanted = ("--target", str(folder), "--no-deps", "--quiet", "axe-playwright-python")
    subprocess.run([sys.executable, "-m", "pip", "install", *wanted], check=True, timeout=300)
    return next(folder.rglob("axe.min.js")).read_text("utf-8")


@dataclass
class Outcome:
    """What a command of the fixture ``cli`` did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def cli(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Outcome]:
    """``cli("check", "x")``: exit code, stdout and stderr, at a fixed width and without colour."""
    from tfrecreg.cli.main import main

    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    # Starting worker processes is most of what a small build costs; some tests ask for them.
    monkeypatch.setenv("TFRECREG_JOBS", "1")

    def call(*arguments: str | Path) -> Outcome:
        capsys.readouterr()
        code = main([str(each) for each in arguments])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err or "TFRECREG_DEBUG" in os.environ
        return Outcome(code, captured.out, captured.err)

    return call

"""The wheel alone, in an environment that has nothing else: the core without any extra.

Each test runs from `/` in a new virtual environment, once for each Python that is supported and
found on this machine. Needs `uv` and a package index; skips with the reason where one is missing.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from package_support import (
    LIBRARY,
    PYTHONS,
    Archives,
    Interpreter,
    find_python,
    fresh_environment,
    has_compiler,
    wheel_files,
    without_compiler,
)
from packaging.requirements import Requirement
from packaging.version import Version

from tfrecreg import __version__

pytestmark = pytest.mark.slow

LOAD = """
import sys, tfrecreg
try:
    tfrecreg.load("digits", "train", registry=sys.argv[1])
except tfrecreg.TfrecregError as error:
    print(type(error).__name__, error.exit_code, error.message, error.hint, sep="\\n")
"""


def made(
    folder: Path,
    version: str,
    *wanted: str,
    options: tuple[str, ...] = (),
    env: Mapping[str, str] | None = None,
) -> Interpreter:
    python = find_python(version)
    if python is None:
        pytest.skip(f"there is no Python {version} on this machine")
    return fresh_environment(folder / "env", python, *wanted, options=options, env=env)


@pytest.fixture(scope="module", params=PYTHONS)
def core(
    request: pytest.FixtureRequest, archives: Archives, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Interpreter]:
    """An environment with the wheel and what it requires."""
    folder = tmp_path_factory.mktemp(f"core-{request.param}")
    yield made(folder, request.param, str(archives.wheel))
    shutil.rmtree(folder / "env", ignore_errors=True)


def test_the_core_brings_none_of_the_heavy_packages(core: Interpreter) -> None:
    code = "from importlib.metadata import distributions as d; print(*(e.name for e in d()))"
    done = core.run("-c", code)
    names = {name.lower().replace("_", "-") for name in done.out.split()}
    assert {"tfrecreg", "numpy", "tensorflow-metadata"} <= names
    heavy = {"tensorflow", "tensorflow-data-validation", "tfx-bsl", "apache-beam", "dvc", "pandas"}
    heavy |= {"pyarrow", "duckdb", "pillow", "pycocotools", "torch", "scipy"}
    assert names & heavy == set()


def test_the_demo_runs_on_the_core_and_loading_says_what_to_install(
    core: Interpreter, archives: Archives, tmp_path: Path
) -> None:
    done = core.script("demo", tmp_path / "demo")
    assert done.code == 0, done.err
    assert "error CRC002 data-checksum" in done.out
    assert done.err == ""
    done = core.run("-c", LOAD, tmp_path / "demo")
    assert done.out.splitlines() == [
        "MissingExtraError",
        "3",
        "loading with tf.data needs the extra `tf`, which is not installed",
        f"uv pip install 'tfrecreg[tf] @ {archives.wheel.as_uri()}'",
    ], done.err


def test_the_oldest_versions_that_are_allowed_are_enough(
    archives: Archives, tmp_path: Path
) -> None:
    """What `>=` says in the metadata is true: the demo and every face run on just these."""
    text = wheel_files(archives.wheel)[f"tfrecreg-{__version__}.dist-info/METADATA"].decode()
    needed = [
        Requirement(line.removeprefix("Requires-Dist: "))
        for line in text.splitlines()
        if line.startswith("Requires-Dist: ") and "extra ==" not in line
    ]
    options = ("--resolution", "lowest-direct", "--only-binary", ":all:")
    wanted = [str(each) for each in needed]
    oldest = made(tmp_path, PYTHONS[0], str(archives.wheel), *wanted, options=options)
    found = oldest.run("-c", "from importlib.metadata import version as v; print(v('msgspec'))")
    (msgspec,) = (each for each in needed if each.name == "msgspec")
    (bound,) = msgspec.specifier
    assert (bound.operator, Version(bound.version)) == (">=", Version(found.out.strip()))
    root = tmp_path / "demo"
    for command, code in (
        (("demo", root), 0),
        (("-C", root, "check"), 0),
        (("-C", root, "check", root / "damaged"), 1),
        (("-C", root, "list"), 0),
        (("-C", root, "log", "digits"), 0),
        (("-C", root, "show", "digits@1.0.0", "--json"), 0),
        (("-C", root, "head", "digits", "-n", "1"), 0),
        (("-C", root, "schema", "show", "digits", "--format", "tf"), 0),
        (("-C", root, "schema", "infer", "digits"), 0),
        (("plugins", "list"), 0),
        (("explain",), 0),
        ((), 2),
        (("schema",), 2),
        (("nonsense",), 2),
        (("check", "--nonsense"), 2),
        (("check", root / "no-such-file"), 2),
    ):
        done = oldest.script(*command)
        assert done.code == code, (command, done.out, done.err)
        assert "Traceback" not in done.err, command
        assert "Warning" not in done.err, command


def scanner_of(python: Interpreter) -> dict[str, str]:
    done = python.script("plugins", "list", "--json")
    assert done.code == 0, done.err
    found: dict[str, str] = json.loads(done.out)["scanner"]
    return found


def test_the_sdist_installs_where_there_is_no_compiler(archives: Archives, tmp_path: Path) -> None:
    """As pip would: built in an isolation of its own, with no `cc` in the `PATH`."""
    env = without_compiler(tmp_path / "bin")
    sdist = shutil.copy(archives.sdist, tmp_path)  # of which no wheel is in any cache
    python = made(tmp_path, PYTHONS[1], str(sdist), env=env)
    assert scanner_of(python)["kind"] == "python"
    done = python.script("demo", tmp_path / "demo")
    assert done.code == 0, done.err
    assert "error CRC002 data-checksum" in done.out


@pytest.mark.skipif(not has_compiler(), reason="there is no C compiler")
def test_the_sdist_is_compiled_where_there_is_one(archives: Archives, tmp_path: Path) -> None:
    python = made(tmp_path, PYTHONS[1], shutil.copy(archives.sdist, tmp_path))
    assert scanner_of(python)["kind"] == "native"


@pytest.mark.skipif(not has_compiler(), reason="there is no C compiler")
def test_one_wheel_is_compiled_for_every_python(core: Interpreter) -> None:
    assert scanner_of(core)["kind"] == "native"


@pytest.fixture
def cloned(archives: Archives, tmp_path: Path) -> Path:
    """What the sdist holds, as a git repository with nothing left to commit."""
    if shutil.which("git") is None:
        pytest.skip("there is no git")
    with tarfile.open(archives.sdist) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (root,) = (tmp_path / "unpacked").iterdir()
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for command in (("init", "-q"), ("add", "-A"), (*who, "commit", "-q", "-m", "all")):
        subprocess.run(["git", *command], cwd=root, check=True, capture_output=True)
    return root


@pytest.mark.parametrize("compiler", [True, False], ids=["compiler", "no compiler"])
def test_an_editable_install_leaves_the_tree_clean(
    compiler: bool, cloned: Path, tmp_path: Path
) -> None:
    if compiler and not has_compiler():
        pytest.skip("there is no C compiler")
    env = None if compiler else without_compiler(tmp_path / "bin")
    python = made(tmp_path, PYTHONS[1], "--editable", str(cloned), env=env)
    assert scanner_of(python)["kind"] == ("native" if compiler else "python")
    assert (cloned / LIBRARY).exists() == compiler
    status = ["git", "status", "--porcelain"]
    left = subprocess.run(status, cwd=cloned, check=True, capture_output=True, text=True)
    assert left.stdout == ""

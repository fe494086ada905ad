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
    NEEDS,
    PYTHONS,
    Archives,
    Interpreter,
    NoNetworkError,
    find_python,
    fresh_environment,
    has_compiler,
    plant_needy_plugin,
    wheel_files,
    without_compiler,
)
from packaging.requirements import Requirement
from packaging.version import Version
from tests_support import flip

from tfrecreg import __version__

pytestmark = pytest.mark.slow

DRAW = """
import sys
from tfrecreg.cli.digits import write_digits
from tfrecreg.core.storage.local import LocalStorage
write_digits(LocalStorage(sys.argv[1]), train=40, test=10, seed=1)
"""

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
    try:
        return fresh_environment(folder / "env", python, *wanted, options=options, env=env)
    except NoNetworkError as error:
        pytest.skip(f"nothing can be installed: {error}")


@pytest.fixture(scope="module", params=PYTHONS)
def core(
    request: pytest.FixtureRequest, archives: Archives, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Interpreter]:
    """An environment with the wheel and what it requires."""
    folder = tmp_path_factory.mktemp(f"core-{request.param}")
    yield made(folder, request.param, str(archives.wheel))
    shutil.rmtree(folder / "env", ignore_errors=True)


@pytest.fixture(scope="module")
def registry(core: Interpreter, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A registry that the core alone built and released."""
    root = tmp_path_factory.mktemp("registry") / "root"
    done = core.run("-c", DRAW, root / "raw")
    assert done.code == 0, done.err
    for command in (
        ("init", root),
        (
            "-C",
            root,
            "build",
            "digits",
            "--source",
            "mnist",
            "--raw",
            root / "raw",
            "--shards",
            "2",
        ),
        ("-C", root, "release", "digits"),
    ):
        done = core.script(*command)
        assert done.code == 0, done.err
        assert "Traceback" not in done.err
    return root


def test_the_core_brings_none_of_the_heavy_packages(core: Interpreter) -> None:
    code = "from importlib.metadata import distributions as d; print(*(e.name for e in d()))"
    done = core.run("-c", code)
    names = {name.lower().replace("_", "-") for name in done.out.split()}
    assert {"tfrecreg", "numpy", "tensorflow-metadata"} <= names
    heavy = {"tensorflow", "tensorflow-data-validation", "tfx-bsl", "apache-beam", "dvc", "pandas"}
    heavy |= {"pyarrow", "duckdb", "pillow", "pycocotools", "torch", "scipy"}
    assert names & heavy == set()


def test_the_core_says_its_version(core: Interpreter) -> None:
    assert core.script("--version").out == f"tfrecreg {__version__}\n"
    assert core.tfrecreg("--version").out == f"tfrecreg {__version__}\n"


def test_the_core_has_the_bundled_plugins(core: Interpreter, plugin_packages: list[str]) -> None:
    done = core.script("plugins", "list", "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    sources = {each["name"] for each in found["sources"]}
    assert sources == {"tfrecreg", *(each.removeprefix("tfrecreg_") for each in plugin_packages)}
    assert "mnist" in sources
    validators = {each["name"] for each in found["validators"]}
    assert validators >= {"crc", "inflation", "manifest", "schema"}
    assert (found["broken"], found["clashes"]) == ([], [])


def test_the_core_explains_codes(core: Interpreter) -> None:
    done = core.script("explain", "CRC002")
    assert done.code == 0, done.err
    assert done.out.startswith("CRC002 data-checksum (error)\n")
    assert "DataLossError" in done.out


def test_the_core_shows_the_bundled_schema(
    core: Interpreter, archives: Archives, tmp_path: Path
) -> None:
    text = wheel_files(archives.wheel)["tfrecreg_mnist/mnist.pbtxt"]
    code = "import sys, tfrecreg_mnist as p; sys.stdout.write(p.__path__[0])"
    file = Path(core.run("-c", code).out) / "mnist.pbtxt"
    assert file.read_bytes() == text
    done = core.script("schema", "show", file)
    assert done.code == 0, done.err
    assert done.out.encode().strip() == text.strip()
    done = core.script("schema", "show", file, "--format", "tf")
    assert "'image/class/label': tf.io.FixedLenFeature([], tf.int64)" in done.out


def test_the_core_gives_a_new_dataset_its_schema(
    core: Interpreter, registry: Path, archives: Archives
) -> None:
    text = wheel_files(archives.wheel)["tfrecreg_mnist/mnist.pbtxt"]
    # With the sides of its images, which are those of MNIST.
    sided = text.replace(b"int_domain { min: 1 }", b"int_domain { min: 28 max: 28 }")
    assert sided.count(b"min: 28") == 2
    assert (registry / "schemas/digits.pbtxt").read_bytes() == sided


def test_the_core_keeps_the_bytes_of_a_release_without_dvc(
    core: Interpreter, registry: Path
) -> None:
    assert not (registry / ".dvc").exists()
    build = {path.name: path.read_bytes() for path in (registry / "data/digits").glob("digits-*")}
    kept = registry / "versions/digits/1.0.0"
    assert len(build) == 4
    assert {path.name: path.read_bytes() for path in kept.glob("digits-*")} == build
    # The build goes, the release stays what it was and where it can be checked.
    shutil.copytree(registry, registry.with_name("copy"))
    copy = registry.with_name("copy")
    shutil.rmtree(copy / "data/digits")
    done = core.script("-C", copy, "check", "digits@1.0.0", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["summary"]["records"] == 50
    assert json.loads(done.out)["skipped"] == []


def test_the_core_tells_a_sound_shard_from_a_damaged_one(
    core: Interpreter, registry: Path, tmp_path: Path
) -> None:
    shard = registry / "data/digits/digits-train.tfrecord-00000-of-00002"
    done = core.script("check", "--only", "crc", shard)
    assert done.code == 0, done.err
    copy = tmp_path / shard.name
    shutil.copy(shard, copy)
    flip(copy, 100)
    done = core.script("check", "--only", "crc", copy, "--json")
    assert done.code == 1, done.err
    (finding,) = json.loads(done.out)["findings"]
    assert (finding["code"], finding["locations"][0]["record"]) == ("CRC002", 0)


def test_two_processes_check_as_one_does(core: Interpreter, registry: Path) -> None:
    shards = sorted((registry / "data/digits").glob("digits-*"))
    one, two = (core.script("check", "--json", "--jobs", jobs, *shards) for jobs in ("1", "2"))
    assert (two.code, two.out) == (0, one.out), two.err


def test_without_tensorflow_loading_says_what_to_install(
    core: Interpreter, archives: Archives, registry: Path
) -> None:
    done = core.run("-c", LOAD, registry)
    assert done.out.splitlines() == [
        "MissingExtraError",
        "3",
        "loading with tf.data needs the extra `tf`, which is not installed",
        f"uv pip install 'tfrecreg[tf] @ {archives.wheel.as_uri()}'",
    ], done.err


def test_what_a_core_without_extras_cannot_do_says_what_to_install(
    core: Interpreter, archives: Archives, registry: Path, tmp_path: Path
) -> None:
    with_plugin = Interpreter(core.python, {**core.env, "PYTHONPATH": str(tmp_path)})
    plant_needy_plugin(tmp_path)
    done = with_plugin.script("-C", registry, "check", "--only", "needy", "digits")
    assert done.code == 3, done.err
    assert "Traceback" not in done.err
    install = f"uv pip install 'tfrecreg[tfdv] @ {archives.wheel.as_uri()}'"
    assert NEEDS + install in " ".join(done.out.split())


def test_the_demo_runs_on_the_core(core: Interpreter, tmp_path: Path) -> None:
    done = core.script("demo", tmp_path / "demo")
    assert done.code == 0, done.err
    assert "error CRC002 data-checksum" in done.out
    assert done.err == ""


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

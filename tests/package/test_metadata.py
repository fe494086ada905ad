"""What the package says of itself is true: versions, requirements, extras, entry points."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Mapping
from email.message import Message
from email.parser import Parser
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from package_support import (
    CHECKOUT,
    Archives,
    Interpreter,
    imports_of,
    source_modules,
    wheel_files,
)
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from tfrecreg import __version__
from tfrecreg.core.plugins.bundled import BUNDLED
from tfrecreg.core.plugins.manager import plugins
from tfrecreg.core.plugins.records import PLUGIN_KINDS

HEAVY = {
    "apache-beam",
    "array-record",
    "duckdb",
    "dvc",
    "pandas",
    "pillow",
    "pyarrow",
    "pycocotools",
    "tensorflow",
    "tensorflow-data-validation",
    "tensorflow-datasets",
    "tfx-bsl",
    "tinytag",
    "torch",
}
PROVIDERS = {
    "uvicorn": "uvicorn",
    "PIL": "pillow",
    "anyio": "starlette",  # which runs on it
    "apache_beam": "apache-beam",
    "array_record": "array-record",
    "dvc_data": "dvc",  # which is made of it
    "google.protobuf": "protobuf",
    "jinja2": "jinja2",
    "markupsafe": "jinja2",  # which is made of it
    "google_crc32c": "google-crc32c",
    "starlette": "starlette",
    "ruamel.yaml": "dvc",  # which reads its own files with it
    "tensorflow_data_validation": "tensorflow-data-validation",
    "tensorflow_metadata": "tensorflow-metadata",
    "tfx_bsl": "tfx-bsl",
    "yaml": "pyyaml",
    **{
        name: name
        for name in (
            "blake3",
            "click",
            "distributed",
            "duckdb",
            "dvc",
            "fsspec",
            "msgspec",
            "numpy",
            "pandas",
            "pluggy",
            "pyarrow",
            "pycocotools",
            "ray",
            "rich",
            "tensorflow",
            "tinytag",
            "tomli",
            "tomlkit",
            "torch",
        )
    },
}
"""Module to the distribution that has it."""
BROUGHT_BY_TFDV = {"pandas", "pyarrow", "tfx-bsl"}
LINUX = {"sys_platform": "linux", "platform_machine": "x86_64"}
CONSTRAINTS = sorted((CHECKOUT / "requirements").glob("constraints-*.txt"))


@pytest.fixture(scope="module")
def info(archives: Archives) -> dict[str, str]:
    """The files of the wheel's `.dist-info`."""
    start = f"tfrecreg-{__version__}.dist-info/"
    files = wheel_files(archives.wheel).items()
    return {name[len(start) :]: data.decode() for name, data in files if name.startswith(start)}


@pytest.fixture(scope="module")
def described(info: dict[str, str]) -> Message:
    return Parser().parsestr(info["METADATA"])


@pytest.fixture(scope="module")
def required(described: Message) -> list[Requirement]:
    return [Requirement(line) for line in described.get_all("Requires-Dist", [])]


def brought(required: list[Requirement], extra: str, **machine: str) -> dict[str, SpecifierSet]:
    """What is installed for `extra` on that machine, beside what else it brings."""
    environment = {"python_version": "3.11", **LINUX, **machine, "extra": extra}
    found: dict[str, SpecifierSet] = {}
    for each in required:
        if each.marker is None or each.marker.evaluate(environment):
            name = canonicalize_name(each.name)
            found[name] = found.get(name, SpecifierSet()) & each.specifier
    return found


PINS = sorted(CHECKOUT.glob("requirements/*-3.*.txt"))


@pytest.mark.parametrize("path", PINS, ids=lambda path: path.stem)
def test_pins_are_within_the_bounds(required: list[Requirement], path: Path) -> None:
    """Else they were made before a bound was changed: see `CONTRIBUTING.md`."""
    kind, python = path.stem.split("-")
    pins = dict(line.split("==") for line in path.read_text("utf-8").split())
    everything = [
        "tf",
        "dvc",
        "beam",
        "images",
        "coco",
        "media",
        "yaml",
        "arrayrecord",
        "parquet",
        "remote",
        "dev",
    ]
    if kind == "constraints":
        everything.append("tfdv-1-16")
    for extra in everything:
        for name, bounds in brought(required, extra, python_version=python).items():
            if name != "tfrecreg":
                assert pins[name] in bounds, (name, extra)


def test_there_is_one_version(
    described: Message, pyproject: Mapping[str, Any], here: Interpreter
) -> None:
    assert described["Version"] == pyproject["project"]["version"] == __version__
    assert here.tfrecreg("--version").out == f"tfrecreg {__version__}\n"


def test_every_python_that_is_allowed_is_named(described: Message) -> None:
    assert described["Requires-Python"] == ">=3.10"
    pattern = re.compile(r"Programming Language :: Python :: (3\.\d+)")
    classifiers = described.get_all("Classifier", [])
    named = [match[1] for each in classifiers if (match := pattern.fullmatch(each))]
    assert named == ["3.10", "3.11", "3.12", "3.13"]


@pytest.mark.parametrize("python", ["3.10", "3.11", "3.12", "3.13"])
def test_the_core_requires_nothing_heavy(required: list[Requirement], python: str) -> None:
    core = brought(required, "", python_version=python)
    assert set(core) & HEAVY == set()
    assert set(core) >= {"blake3", "google-crc32c", "numpy", "pluggy", "tensorflow-metadata"}
    assert ("tomli" in core) == (python == "3.10")


@pytest.mark.medium
def test_everything_that_is_imported_is_required_and_nothing_else(
    required: list[Requirement],
) -> None:
    imported = set()
    # Python 3.10 does not know `tomllib` yet; type checkers bring `typing_extensions`.
    standard = sys.stdlib_module_names | {"tomllib", "typing_extensions"}
    for path in source_modules().values():
        for name in imports_of(path):
            top = name.partition(".")[0]
            if top not in standard and not top.startswith("tfrecreg"):
                starts = [start for start in PROVIDERS if f"{name}.".startswith(f"{start}.")]
                imported |= {PROVIDERS[start] for start in starts} or {name}
    core = set(brought(required, "", python_version="3.10"))
    extras = set().union(*(brought(required, extra) for extra in ("all", "dask", "ray", "torch")))
    assert imported - core - extras - BROUGHT_BY_TFDV == set()
    assert core - imported == set()


def test_the_extras_are_those_that_are_promised(described: Message) -> None:
    extras = set(described.get_all("Provides-Extra", []))
    promised = {"tf", "tfdv", "dvc", "dask", "beam", "ray", "torch", "remote", "all"}
    formats = {"arrayrecord", "parquet", "query", "view", "yaml"}
    assert extras == {*promised, *formats, "tfdv-1-16", "images", "coco", "media", "dev"}


@pytest.mark.medium
def test_each_extra_that_an_error_names_exists(described: Message) -> None:
    extras = set(described.get_all("Provides-Extra", []))
    named = {}
    for kind in PLUGIN_KINDS:
        for each in plugins().every(kind):
            if each.plugin_id.is_ours and each.record.extra is not None:
                named[each.qualified] = each.record.extra
    for name, path in source_modules().items():
        if name == "tfrecreg.core.plugins.manager":
            continue  # it names the extra of a record
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "MissingExtraError":
                (_, extra) = node.args
                assert isinstance(extra, ast.Constant), f"{name}: the extra is no plain string"
                named[name] = extra.value
    assert named
    assert {name: extra for name, extra in named.items() if extra not in extras} == {}


TFDV = "tensorflow-data-validation"
MAC = {"sys_platform": "darwin", "platform_machine": "arm64"}


@pytest.mark.parametrize("extra", ["tfdv", "tfdv-1-16", "all"])
@pytest.mark.parametrize("python", ["3.10", "3.11"])
def test_the_older_tfdv_is_for_the_older_pythons(
    required: list[Requirement], extra: str, python: str
) -> None:
    found = brought(required, extra, python_version=python)
    # Below, Python 3.10 would get 1.15 beside a TensorFlow that it does not go with.
    assert [each for each in ("1.16.0", "1.16.1", "1.17.0", "1.21.0") if each in found[TFDV]] == [
        "1.16.1"
    ]
    assert "2.73.0" not in found["apache-beam"]


@pytest.mark.parametrize(
    "machine",
    [
        {"python_version": "3.12"},
        {"python_version": "3.13"},
        {**MAC, "python_version": "3.10"},
        {**MAC, "python_version": "3.13"},
    ],
    ids=str,
)
def test_the_newer_tfdv_is_for_who_names_it(
    required: list[Requirement], machine: dict[str, str]
) -> None:
    found = brought(required, "tfdv", **machine)[TFDV]
    assert [each for each in ("1.16.1", "1.21.0", "1.21.3", "1.22.0") if each in found] == [
        "1.21.0",
        "1.21.3",
    ]
    # Older systems have no wheel of it, and `all` is for every machine.
    assert TFDV not in brought(required, "all", **machine)


@pytest.mark.parametrize(
    "machine",
    [
        {"python_version": "3.14"},
        {**MAC, "python_version": "3.14"},
        {"sys_platform": "darwin"},
        {"platform_machine": "aarch64"},
        {"python_version": "3.13", "platform_machine": "aarch64"},
    ],
    ids=str,
)
@pytest.mark.parametrize("extra", ["tfdv", "all"])
def test_tfdv_is_asked_for_nowhere_else(
    required: list[Requirement], extra: str, machine: dict[str, str]
) -> None:
    found = brought(required, extra, **machine)
    assert TFDV not in found
    core = brought(required, "", **machine)
    assert extra == "all" or set(found) == set(core)


@pytest.mark.parametrize("path", CONSTRAINTS, ids=lambda path: path.stem)
def test_the_constraints_keep_to_what_is_allowed(path: Any, required: list[Requirement]) -> None:
    python = path.stem.removeprefix("constraints-")
    pinned = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        match = re.match(r"([A-Za-z0-9._-]+)==([^\s;]+)", line)
        if match:
            pinned[canonicalize_name(match[1])] = match[2]
    wanted = brought(required, "all", python_version=python)
    wanted |= brought(required, "dev", python_version=python)
    missing = {name for name in wanted if name not in pinned}
    assert missing == set()
    assert {n: pinned[n] for n, allowed in wanted.items() if pinned[n] not in allowed} == {}


def test_each_plugin_package_is_among_the_bundled_ones(
    info: dict[str, str], plugin_packages: list[str]
) -> None:
    assert "[tfrecreg]" not in info["entry_points.txt"]
    own = set(plugin_packages)
    assert own == {each for each in BUNDLED if not each.startswith("tfrecreg.")}
    for each in BUNDLED:
        import_module(each)

"""Imports point down only, and whatever is new has its place in the order."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from package_support import CHECKOUT, imports_of, source_modules

Contracts = Mapping[str, Mapping[str, Any]]


@pytest.fixture(scope="module")
def contracts(pyproject: Mapping[str, Any]) -> Contracts:
    """The contracts by name."""
    return {each["name"]: each for each in pyproject["tool"]["importlinter"]["contracts"]}


@pytest.fixture(scope="module")
def top_level() -> set[str]:
    """The modules right below `tfrecreg`."""
    names = {name for name in source_modules() if name.startswith("tfrecreg.")}
    return {".".join(name.split(".")[:2]) for name in names}


def lint(root: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter over the project at `root`, by the contracts of its `pyproject.toml`."""
    code = "import sys; from importlinter.cli import lint_imports as f; sys.exit(f(no_cache=True))"
    path = f"{root}{os.pathsep}{root / 'plugins'}"
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=root,
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "100", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.medium
def test_imports_keep_the_contracts() -> None:
    done = lint(CHECKOUT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 0 broken" in done.stdout


@pytest.mark.medium
@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        (
            "tfrecreg/core/values/text.py",
            "from tfrecreg.core.storage.interface import Storage",
            "Imports point down",
        ),
        (
            "tfrecreg/core/check/scan/run.py",
            "import tfrecreg.builtin.validators.crc",
            "Imports point down",
        ),
        (
            "tfrecreg/builtin/training/load.py",
            "import tfrecreg_mnist",
            "Nothing imports the bundled",
        ),
        (
            "tfrecreg/builtin/validators/crc.py",
            "import rich",
            "Only commands print",
        ),
        (
            "tfrecreg/core/terminal/render/findings.py",
            "import dvc.repo",
            "dvc lives in tracking only",
        ),
        (
            "plugins/tfrecreg_mnist/source.py",
            "import tfrecreg.core.values.errors",
            "Plugins know the api",
        ),
        ("tfrecreg/core/check/policy.py", "import tfrecreg.core.check.run", "No circles"),
    ],
)
def test_an_import_that_points_up_is_found(
    module: str, line: str, contract: str, tmp_path: Path
) -> None:
    for folder in ("tfrecreg", "plugins"):
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(CHECKOUT / folder, tmp_path / folder, ignore=ignore)
    shutil.copy(CHECKOUT / "pyproject.toml", tmp_path)
    file = tmp_path / module
    text = file.read_text("utf-8")
    start = "from __future__ import annotations\n"
    assert start in text
    file.write_text(text.replace(start, f"{start}{line}\n", 1), "utf-8")
    done = lint(tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    broken = [row for row in done.stdout.splitlines() if " BROKEN" in row]
    assert [row for row in broken if row.startswith(contract)], done.stdout


def test_every_module_has_its_layer(contracts: Contracts, top_level: set[str]) -> None:
    layers = contracts["Imports point down"]["layers"]
    placed = [name.strip() for layer in layers for name in layer.replace(":", "|").split("|")]
    assert sorted(placed) == sorted(top_level)


def test_every_plugin_is_under_the_contracts(
    pyproject: Mapping[str, Any], contracts: Contracts, plugin_packages: list[str]
) -> None:
    linted = pyproject["tool"]["importlinter"]["root_packages"]
    assert sorted(linted) == sorted(["tfrecreg", *plugin_packages])
    own = contracts["Plugins know the api and nothing else"]
    assert sorted(own["source_modules"]) == plugin_packages
    others = contracts["Nothing imports the bundled sources"]
    assert sorted(others["forbidden_modules"]) == plugin_packages


def importers(package: str) -> set[str]:
    """The modules that import a package of others."""
    return {
        name
        for name, path in source_modules().items()
        if any(f"{each}.".startswith(f"{package}.") for each in imports_of(path))
    }


ON_THE_API = [f"tfrecreg.builtin.{room}" for room in ("engines", "images", "reports")]
"""Rooms that know no more of the project than plugins of others do."""


BESIDE_THE_API = {
    "tfx": {"operations.stats"},
}
"""What exporters import beside the api: how a build was made, and its statistics. A name
that one of another distribution would want, too, belongs into the api. The lists only get shorter.
"""


def test_exporters_import_little_of_the_project_beside_its_api() -> None:
    package = "tfrecreg.builtin.export.formats."
    beside = {}
    for name, path in source_modules().items():
        if name.startswith(package):
            found = {each for each in imports_of(path) if each.startswith("tfrecreg")}
            own = {each for each in found if f"{each}.".startswith((package, "tfrecreg.api."))}
            if found - own:
                modules = {each.rpartition(".")[0] for each in found - own}
                beside[name.removeprefix(package)] = modules
    assert beside == {
        name: {f"tfrecreg.{each}" for each in modules} for name, modules in BESIDE_THE_API.items()
    }


VALIDATORS_BESIDE_THE_API = {
    "annotations.class_labels": {"label_maps", "text"},
    "annotations.validator": {"foreign.label_maps", "label_maps"},
    "annotations.visitor": {"label_maps", "text"},
    "content": {
        "digests",
        "findings",
        "manifest.model",
        "records.batch_digests",
        "scan.interface",
        "scan.large_records",
    },
    "drift": {
        "findings",
        "scan.interface",
        "schema.proto",
        "statistics.collect",
        "statistics.distance",
        "statistics.make",
        "statistics.options",
        "statistics.part",
    },
    "duplicates.matches": {"findings"},
    "duplicates.sorted_runs": {"digests", "findings"},
    "duplicates.validator": {"label_maps", "scan.indexes", "storage.local"},
    "duplicates.visitor": {"digests", "index", "scan.indexes"},
    "images": {"images.sniff", "plugins.decoders", "sources.objects.view"},
    "inflation.feature_sample": {"images.sniff"},
    "inflation.shard_sizes": {"example.columns", "example.kinds"},
    "inflation.stored_numbers": {"example.tensors", "images"},
    "inflation.validator": {"config", "scan.interface", "storage.links", "storage.locations"},
    "items.names": {"digests"},
    "items.validator": {
        "example.decode",
        "findings",
        "scan.indexes",
        "scan.interface",
        "storage.local",
    },
    "items.visitor": {"digests", "index", "scan.indexes"},
    "manifest.bare_files": {"errors", "example.kinds", "findings", "shards"},
    "manifest.described_folders": {"findings", "foreign.tfds_info"},
    "manifest.training_hosts": {"manifest.model", "shards"},
    "manifest.validator": {
        "manifest.file",
        "manifest.model",
        "manifest.salvaged",
        "records.hashing",
        "shards",
    },
    "payload_kinds": {"example.kinds", "findings", "manifest.adopted", "records.reader", "text"},
    "record_tables": {"digests", "example.columns"},
    "registry": {
        "reference",
        "registry",
        "registry.audit",
        "registry.chain",
        "registry.registry",
        "registry.yanks",
    },
    "schema.records": {
        "schema.infer",
        "example.kinds",
        "schema.check",
        "schema.compiled",
        "schema.definition",
        "schema.messages",
        "schema.vectorized",
    },
    "schema.sequences": {
        "example.kinds",
        "schema.check",
        "schema.compiled",
        "schema.definition",
        "schema.domain_check",
        "schema.environments",
        "schema.messages",
        "sequences.read",
        "sequences.rules",
    },
    "schema.validator": {"schema.compiled", "schema.environments"},
    "source": {
        "errors",
        "index",
        "manifest.adopted",
        "manifest.model",
        "manifest.python_data",
        "plugins.manager",
        "scan.indexes",
        "sources.guarded",
        "storage.locations",
    },
    "statistics": {
        "findings",
        "schema.environments",
        "schema.proto",
        "statistics.collect",
        "statistics.judge",
        "statistics.options",
        "statistics.part",
        "statistics.tfdv",
    },
}
"""The homes of what validators use and the api does not have: of schemas, statistics, releases, raw
data. A name of the api is imported from its home, as everywhere in the package, and codes are those
of the package's pages. The lists only get shorter.
"""


def test_validators_use_little_that_the_api_does_not_have() -> None:
    package = "tfrecreg.builtin.validators."
    names = imports_of(source_modules()["tfrecreg.api"])
    beside = {}
    for name, path in source_modules().items():
        if name.startswith(package):
            found = {each for each in imports_of(path) if each.startswith("tfrecreg.")} - names
            found = {
                each
                for each in found
                if not each.startswith((package, "tfrecreg.core.values.codes."))
            }
            if found:
                modules = {each.rpartition(".")[0] for each in found}
                beside[name.removeprefix(package)] = modules
    assert beside == {
        name: {f"tfrecreg.{each}" for each in modules}
        for name, modules in VALIDATORS_BESIDE_THE_API.items()
    }


@pytest.mark.medium
def test_plugins_import_nothing_of_the_project_but_its_api(plugin_packages: list[str]) -> None:
    strange = {}
    for package in (*plugin_packages, *ON_THE_API):
        own = (f"{package}.", "tfrecreg.api.")
        modules = {
            name: path
            for name, path in source_modules().items()
            if f"{name}.".startswith(f"{package}.")
        }
        assert modules
        for name, path in modules.items():
            found = {each for each in imports_of(path) if each.startswith("tfrecreg")}
            found = {each for each in found if not f"{each}.".startswith(own)}
            if found:
                strange[name] = found
    assert strange == {}


@pytest.mark.medium
def test_only_the_faces_know_how_to_print_and_parse() -> None:
    of_rooms = r"builtin\.\w+\.(command|printed)"
    faces = rf"tfrecreg\.(cli|commands|render|library\.notebook|{of_rooms})(\.\w+)*"
    for package in ("rich", "click"):
        assert importers(package)
        assert {name for name in importers(package) if not re.fullmatch(faces, name)} == set()


HOMES: dict[str, set[str]] = {
    "PIL": set(),  # through `tfrecreg.core.images.decoder.pillow` alone
    "anyio": {"tfrecreg.builtin.view.app"},
    "apache_beam": {"tfrecreg.builtin.engines.beam"},
    "distributed": {"tfrecreg.builtin.engines.dask"},
    "duckdb": {"tfrecreg.builtin.query.packages"},
    "dvc": {"tfrecreg.builtin.dvc.dvc"},
    "pandas": set(),
    "array_record": {"tfrecreg.builtin.export.formats.arrayrecord"},
    "pyarrow": {
        *("tfrecreg.builtin.export.formats.parquet", "tfrecreg.builtin.query.packages"),
        "tfrecreg_huggingface.arrow",
        "tfrecreg.core.build.sources.parquet",
    },
    "pycocotools": {"tfrecreg_coco.objects"},
    "ray": {"tfrecreg.builtin.engines.ray"},
    "starlette": {"tfrecreg.builtin.view.app", "tfrecreg.builtin.view.server"},
    "tensorflow_data_validation": {"tfrecreg.builtin.statistics.tfdv"},
    "tinytag": {"tfrecreg.core.build.media.read"},
    "torch": {"tfrecreg.torch"},
    "uvicorn": {"tfrecreg.builtin.view.server"},
    "yaml": {"tfrecreg_huggingface.readme", "tfrecreg_yolo.yaml_reader"},
}
"""Where each heavy package is imported: one home each, or one in each of its rooms. One that moves
or arrives is noted here.
"""


@pytest.mark.medium
@pytest.mark.parametrize("package", sorted(HOMES))
def test_a_heavy_package_has_one_home(package: str) -> None:
    assert importers(package) == HOMES[package]
    assert len({home.rpartition(".")[0] for home in HOMES[package]}) == len(HOMES[package])


def test_tensorflow_is_imported_where_it_is_used_and_never_on_the_way() -> None:
    """Inside functions, or for the type checker only."""
    early = []
    for name in importers("tensorflow"):
        tree = ast.parse(source_modules()[name].read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, ast.Import | ast.ImportFrom) and "tensorflow" in ast.unparse(node):
                early.append(name)
    assert early == []

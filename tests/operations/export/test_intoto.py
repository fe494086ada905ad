"""The statement of a release, read by in-toto's own library."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from registry_support import manifest

import tfrecreg
from tfrecreg.builtin.export.intoto import statement
from tfrecreg.manifest.model import Parent, SourceEntry
from tfrecreg.operations.origin import Origin

from .conftest import _python_with, run_python

READER = Path(__file__).parent / "read_statement.py"


@pytest.fixture(scope="session")
def intoto_python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An interpreter with in-toto-attestation, in an environment of its own: its protobuf may be
    another one than TFDV's. `TFRECREG_INTOTO_PYTHON` names one that is there already.
    """
    packages = ("in-toto-attestation",)
    yield from _python_with(packages, "TFRECREG_INTOTO_PYTHON", tmp_path_factory)


@pytest.mark.slow
def test_in_toto_reads_the_statement(
    digits_original: Path, tmp_path: Path, intoto_python: str
) -> None:
    registry = tfrecreg.open(digits_original)
    registry.find("digits@1.0.0").export(tmp_path / "out", to="intoto")
    done = run_python(intoto_python, str(READER), str(tmp_path / "out/statement.intoto.json"))
    assert done.returncode == 0, done.stderr
    manifest = registry.find("digits@1.0.0").manifest
    subjects = len(manifest.shards) + len(manifest.files) + 1  # and the manifest
    assert done.stdout.split() == [str(subjects), "2", "https://github.com/tfrecreg/tfrecreg"]


def test_no_shard_is_copied(digits_original: Path, tmp_path: Path) -> None:
    registry = tfrecreg.open(digits_original)
    result = registry.find("digits@1.0.0").export(tmp_path / "out", to="intoto")
    assert result.files == ("statement.intoto.json",)
    assert result.notes


def test_the_statement_says_what_a_release_was_made_of_and_how(
    digits_original: Path, tmp_path: Path
) -> None:
    registry = tfrecreg.open(digits_original)
    registry.find("digits@1.0.0").export(tmp_path / "out", to="intoto")
    found = json.loads((tmp_path / "out/statement.intoto.json").read_text("ascii"))["predicate"]
    made = registry.find("digits@1.0.0").manifest
    project = found["runDetails"]["builder"]["id"]
    assert made.raw.files == 4
    assert made.provenance is not None
    assert found == {
        "buildDefinition": {
            "buildType": f"{project}/blob/main/docs/parts.md#in-toto",
            "externalParameters": {
                "dataset": "digits",
                "version": "1.0.0",
                "source": "mnist",
                "options": made.source.options,
                "compression": "none",
            },
            "internalParameters": {"codecs": made.codecs},
            "resolvedDependencies": [
                {
                    "name": "raw data",
                    "annotations": {
                        "files": 4,
                        "stored": made.raw.stored,
                        "decoded": made.raw.decoded,
                    },
                },
                {"name": "schema.pbtxt", "digest": {"blake3": made.schema.blake3}},
                {"uri": f"pkg:pypi/tfrecreg@{tfrecreg.__version__}", "name": "source plugin"},
            ],
        },
        "runDetails": {
            "builder": {
                "id": project,
                "version": {"tfrecreg": tfrecreg.__version__, "python": made.provenance.python},
            },
            "metadata": {
                "invocationId": made.digest,
                "finishedOn": made.provenance.created,
            },
            "byproducts": [
                {"name": "ledger", "annotations": {"items": 260, "written": 260, "skipped": 0}},
                {"name": "gate", "annotations": {"passed": True}},
            ],
        },
    }


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        (
            {"source": SourceEntry(name="pets", distribution="more-pets", version="0.1")},
            [{"uri": "pkg:pypi/more-pets@0.1", "name": "source plugin"}],
        ),
        (
            {"base": Parent(version="1.0.0", digest="ba5e" * 16)},
            [{"name": "d@1.0.0", "digest": {"blake3": "ba5e" * 16}}],
        ),
    ],
    ids=["adopted", "by a plugin", "based on a release"],
)
def test_a_plugin_and_a_base_are_dependencies_where_there_are_such(
    changes: dict[str, Any], expected: list[Any]
) -> None:
    origin = Origin(reference="d", manifest=manifest("d", **changes), parts=None)
    definition = statement(origin)["predicate"]["buildDefinition"]
    assert definition["resolvedDependencies"][2:] == expected

"""The statement of a release, read by in-toto's own library."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import tfrecreg

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
    registry = tfrecreg.open_registry(digits_original)
    tfrecreg.export(registry, "digits@1.0.0", tmp_path / "out", to="intoto")
    done = run_python(intoto_python, str(READER), str(tmp_path / "out/statement.intoto.json"))
    assert done.returncode == 0, done.stderr
    manifest = tfrecreg.resolve(registry, "digits@1.0.0").manifest
    subjects = len(manifest.shards) + len(manifest.files) + 1  # and the manifest
    assert done.stdout.split() == [str(subjects), "2", "https://github.com/tfrecreg/tfrecreg"]


def test_no_shard_is_copied(digits_original: Path, tmp_path: Path) -> None:
    registry = tfrecreg.open_registry(digits_original)
    result = tfrecreg.export(registry, "digits@1.0.0", tmp_path / "out", to="intoto")
    assert result.files == ("statement.intoto.json",)
    assert result.notes

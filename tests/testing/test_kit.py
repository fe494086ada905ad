"""The kit passes sound plugins and finds each fault of the others, by pytest and by unittest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from kit_support import FAULTS, Faulty, Notes, Short, failures, source_tests, validator_tests

from tfrecreg.testing import SourceTests, ValidatorTests


@pytest.mark.medium
def test_a_sound_source_passes() -> None:
    assert failures(source_tests(Notes)) == {}


@pytest.mark.medium
def test_a_sound_validator_passes() -> None:
    assert failures(validator_tests(Short)) == {}


@pytest.mark.medium
@pytest.mark.parametrize("test", FAULTS)
def test_the_fault_of_a_source_is_found(test: str) -> None:
    kind, words = FAULTS[test]
    options = {"fault": test} if kind is Faulty else {}
    assert words in failures(source_tests(kind, **options), test)[test]


@pytest.mark.parametrize("kind", Short.__subclasses__(), ids=lambda kind: kind.__name__)
def test_the_fault_of_a_validator_is_found(kind: Any) -> None:
    test, words = kind.found_by
    assert words in failures(validator_tests(kind), test)[test]


@pytest.mark.parametrize("base", [SourceTests, ValidatorTests])
def test_a_base_class_has_no_tests_of_its_own(base: Any) -> None:
    assert not [name for name in dir(base) if name.startswith("test")]


TESTS = """
from kit_support import Short, ValidatorTests

class TestShort(ValidatorTests):
    validator = Short
    good = [{"text": "one"}]
    bad = {"NOT001": [{"text": ""}]}
"""


@pytest.mark.parametrize("runner", [pytest.param("pytest", marks=pytest.mark.slow), "unittest"])
def test_pytest_and_unittest_run_the_kit(tmp_path: Path, runner: str) -> None:
    (tmp_path / "test_short.py").write_text(TESTS)
    path = f"{(Path(__file__).parents[1] / 'support')}:{Path(__file__).parents[2]}"
    options = ["-q", "-p", "no:cacheprovider"] if runner == "pytest" else []
    done = subprocess.run(
        [sys.executable, "-m", runner, *options, "test_short.py"],
        cwd=tmp_path,
        env={"PYTHONPATH": path, "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "10 passed" in done.stdout or "Ran 10 tests" in done.stderr

"""An engine of another distribution: one module, one entry point, and `--engine` runs it."""

from __future__ import annotations

from textwrap import dedent, indent
from typing import Any

import pytest
from hostile_plugin_support import EVIL, Place, here, place, plant

__all__ = ["here", "place"]

ENGINE = """
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from tfrecreg.api import EngineRecord, ExecutorEngine, FailureError, hookimpl

@dataclass(frozen=True)
class CrewOptions:
    size: int = 2

    def __post_init__(self):
        if self.size < 1:
            raise ValueError(f"`size` should be at least 1, found {self.size}")

class Crew(ExecutorEngine):
    Options = CrewOptions

    def executor(self):
        jobs = self.request.jobs or self.request.options.size
        print("the crew of", jobs, "comes aboard")
        return ThreadPoolExecutor(jobs)

@hookimpl
def tfrecreg_engines():
    yield EngineRecord(name="crew", summary="threads that sail", load=lambda: Mine)

class Mine(Crew):
"""
CHECK = ("check", "0.tfrecord", "1.tfrecord")


def plant_engine(place: Place, body: str = "pass") -> None:
    plant(place.site, f"{ENGINE}{indent(dedent(body), '    ')}\n")


@pytest.mark.medium
def test_it_runs_the_tasks_of_a_command(place: Place) -> None:
    plain = place.run(*CHECK, "--json")
    plant_engine(place)
    code, out, err = place.run(*CHECK, "--json", "--engine", "crew")
    assert (code, out) == plain[:2]
    assert err == "the crew of 2 comes aboard\n"
    _, _, err = place.run(*CHECK, "--engine", "hostile:crew", "--engine-option", "size=3")
    assert "the crew of 3" in err
    _, _, err = place.run(*CHECK, "--engine", "crew", "--jobs", "1")
    assert "the crew of 1" in err


@pytest.fixture
def engine(here: Any, place: Place, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a check by the engine in this process."""
    plant_engine(place)
    monkeypatch.chdir(place.root)
    return lambda *more: here.run(*CHECK, "--engine", "crew", *more)


def test_its_options_are_checked(engine: Any) -> None:
    done = engine("--engine-option", "sise=3")
    assert (done.code, done.out) == (2, "")
    assert "did you mean `size`?" in done.err


@pytest.mark.parametrize(
    ("method", "body", "told"),
    [
        ("executor", "sys.exit(0)", f"the engine `crew` of {EVIL} failed: SystemExit: 0"),
        ("workers", "1 / 0", f"the engine `crew` of {EVIL} failed: ZeroDivisionError: "),
        ("executor", "raise FailureError('the crew sank')", "the crew sank"),
    ],
)
def test_its_mistakes_are_told_as_its_own(
    here: Any, place: Place, monkeypatch: pytest.MonkeyPatch, method: str, body: str, told: str
) -> None:
    plant_engine(place, f"def {method}(self):\n    {body}")
    monkeypatch.chdir(place.root)
    done = here.run(*CHECK, "--engine", "crew")
    assert done.code == 3
    assert f"error: {told}" in done.err
    assert "Traceback" not in done.err

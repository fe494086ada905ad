"""An engine of another distribution: one module, one entry point, and `--engine` runs it."""

from __future__ import annotations

import pytest
from hostile_plugin_support import EVIL, InProcess, plant
from hostile_plugin_support import here as here  # the fixture

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


def test_it_runs_the_tasks_of_a_command(here: InProcess) -> None:
    plain = here.check("--json")
    plant(here.site, ENGINE, "")
    done = here.check("--json", "--engine", "crew")
    assert (done.code, done.out) == (plain.code, plain.out)
    assert done.err == "the crew of 2 comes aboard\n"
    done = here.check("--engine", "hostile:crew", "--engine-option", "size=3")
    assert "the crew of 3" in done.err
    assert "the crew of 1" in here.check("--engine", "crew", "--jobs", "1").err


def test_its_options_are_checked(here: InProcess) -> None:
    plant(here.site, ENGINE, "")
    done = here.check("--engine", "crew", "--engine-option", "sise=3")
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
    here: InProcess, method: str, body: str, told: str
) -> None:
    plant(here.site, ENGINE, f"def {method}(self):\n    {body}")
    done = here.check("--engine", "crew")
    assert done.code == 3
    assert f"error: {told}" in done.err
    assert "Traceback" not in done.err

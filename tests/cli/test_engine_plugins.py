"""An engine of another distribution: one module, one entry point, and `--engine` runs it."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import dedent, indent
from typing import Any

import pytest
from hostile_plugin_support import EVIL, Place, here, place, plant

from tfrecreg.core.plugins.entry_points import code_of, digest_of_packages
from tfrecreg.core.workers.handshake import terms

__all__ = ["here", "place"]

ENGINE = """
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from tfrecreg.api import (
    EngineRecord, FailureError, RemoteEngine, engine_failed, hookimpl, perform_work, usable_cores,
)

@dataclass(frozen=True)
class CrewOptions:
    size: int = 2

    def __post_init__(self):
        if self.size < 1:
            raise ValueError(f"`size` should be at least 1, found {self.size}")

class Crew(RemoteEngine):
    Options = CrewOptions

    def connect(self):
        print("the crew of", self.workers(), "comes aboard")
        self._pool = ThreadPoolExecutor(self.workers())

    def disconnect(self):
        self._pool.shutdown()

    def workers(self):
        return self.request.jobs or self.request.options.size

    def submit(self, work):
        return self._pool.submit(perform_work, work)

    def result(self, handle):
        return handle.result()

    def cancel(self, handles):
        for handle in handles:
            handle.cancel()

@hookimpl
def tfrecreg_engines():
    yield EngineRecord(name="crew", summary="threads that sail", load=lambda: Mine)

class Mine(Crew):
"""
CHECK = ("check", "0.tfrecord", "1.tfrecord")


@pytest.fixture(autouse=True)
def fresh_terms() -> Iterator[None]:
    """What workers have to agree on is that of this plugin, and afterwards that of others."""
    for each in (terms, code_of, digest_of_packages):
        each.cache_clear()
    yield
    for each in (terms, code_of, digest_of_packages):
        each.cache_clear()


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


@pytest.mark.parametrize(
    ("option", "message", "hint"),
    [
        ("sise=3", "the option `sise` of `crew` is not known; did you mean `size`?", "known: size"),
        (
            "size=many",
            "the option `size` of `crew` should be a whole number, found `many`",
            "`tfrecreg plugins show crew` lists the options",
        ),
    ],
)
def test_its_options_are_checked(engine: Any, option: str, message: str, hint: str) -> None:
    done = engine("--engine-option", option)
    assert (done.code, done.out) == (2, "")
    assert done.err.splitlines() == [f"error: {message}", f"hint: {hint}"]


@pytest.mark.parametrize(
    ("method", "told", "what"),
    [
        ("connect", "connect", "sys.exit(0)"),
        ("submit", "greet", "1 / 0"),
        ("result", "greet", "sys.exit(0)"),
    ],
)
def test_its_mistakes_are_told_as_its_own(
    here: Any, place: Place, monkeypatch: pytest.MonkeyPatch, method: str, told: str, what: str
) -> None:
    plant_engine(place, f"def {method}(self, *more):\n    {what}")
    monkeypatch.chdir(place.root)
    done = here.run(*CHECK, "--engine", "crew")
    assert done.code == 3
    error, hint = [line for line in done.err.splitlines() if not line.startswith("the crew")]
    assert error.startswith(f"error: the engine `crew` of {EVIL} failed in `{told}`: ")
    assert hint == "hint: update or correct `hostile`; `TFRECREG_DEBUG=1` shows the traceback"


def test_a_failure_that_it_tells_is_told_in_its_words(engine: Any, place: Place) -> None:
    body = "def result(self, handle):\n    raise engine_failed('crew', 'sank', OSError('a hole'))"
    plant_engine(place, body)
    done = engine()
    assert done.code == 3
    assert done.err.splitlines()[-1] == "error: the engine `crew` sank: OSError: a hole"

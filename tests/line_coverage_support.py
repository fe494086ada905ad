"""A plugin of pytest that records which tests execute which lines.

Loaded by ``-p line_coverage_support``. The environment variable ``LINE_COVERAGE`` names the folder
to write to: a file of coverage.py for each process, with a context for each test, and a file of
JSON Lines with the outcome and duration of each test.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import coverage
import pytest

_FOLDER = Path(os.environ["LINE_COVERAGE"])
_PROCESS = f"{os.environ.get('PYTEST_XDIST_WORKER', 'main')}-{os.getpid()}"
_coverage = coverage.Coverage(
    data_file=str(_FOLDER / f"{_PROCESS}.coverage"),
    include=os.environ["LINE_COVERAGE_FILES"].split(os.pathsep),
    config_file=False,
)
_coverage.start()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """All of a test is its context, its fixtures among them."""
    _coverage.switch_context(item.nodeid)
    try:
        return (yield)
    finally:
        _coverage.switch_context("")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when != "call" or os.environ.get("PYTEST_XDIST_WORKER"):
        return
    line = {"test": report.nodeid, "passed": report.passed, "seconds": report.duration}
    with (_FOLDER / "tests.jsonl").open("a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")


def pytest_unconfigure() -> None:
    _coverage.stop()
    _coverage.save()

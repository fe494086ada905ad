"""The command line, run as a user does, in this process."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tfrecreg.cli.main import main


@dataclass
class Outcome:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Cli = Callable[..., Outcome]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """``cli("check", "x")``: exit code, stdout and stderr, at a fixed width and without colour."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    # Starting worker processes is most of what a small build costs; some tests ask for them.
    monkeypatch.setenv("TFRECREG_JOBS", "1")

    def call(*arguments: str | Path) -> Outcome:
        capsys.readouterr()
        code = main([str(each) for each in arguments])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err or "TFRECREG_DEBUG" in os.environ
        return Outcome(code, captured.out, captured.err)

    return call

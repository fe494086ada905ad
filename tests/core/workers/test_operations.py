"""An operation closes the engine that it makes, and leaves a given engine open."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import Any

import pytest

from tfrecreg.builtin.adopt.request import AdoptRequest
from tfrecreg.builtin.adopt.run import adopt
from tfrecreg.builtin.export.run import export
from tfrecreg.builtin.python_data.build import build
from tfrecreg.builtin.releases.diff.result import diff
from tfrecreg.builtin.releases.release import ReleaseRequest, publish, release
from tfrecreg.builtin.salvage.run import salvage
from tfrecreg.cli.main import main
from tfrecreg.core.build.request import BuildRequest
from tfrecreg.core.build.run import preview
from tfrecreg.core.check.run import check
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.workers.local import LocalEngine


class Watched(LocalEngine):
    """Counts how often it was closed; works in this process."""

    def __init__(self) -> None:
        super().__init__(1)
        self.closed = 0

    def close(self) -> None:
        self.closed += 1

    def run(
        self, function: Callable[[Any], Any], tasks: Iterable[Any]
    ) -> Generator[Any, None, None]:
        yield from LocalEngine(1).run(function, tasks)


def test_no_operation_closes_the_engine_of_its_caller(
    digits_registry: Path, tmp_path: Path
) -> None:
    registry = open_registry(digits_registry)
    engine = Watched()
    request = BuildRequest(name="digits")
    build(registry, request, engine=engine)
    preview(registry, request, engine=engine)
    with pytest.raises(UsageError):
        build(registry, BuildRequest(name="digits", raw="nowhere"), engine=engine)
    check(["digits"], registry=digits_registry, engine=engine)
    diff("digits@1.0.0", "digits", registry=registry, engine=engine)
    salvage([str(digits_registry / "data/digits")], tmp_path / "rescued", engine=engine)
    export(registry, "digits", tmp_path / "out", engine=engine)
    foreign = shutil.copytree(digits_registry / "data/digits", tmp_path / "foreign")
    adopt(registry, AdoptRequest(name="foreign", paths=(f"{foreign}/*-of-*",)), engine=engine)
    release(registry, ReleaseRequest(name="foreign"), engine=engine)
    publish(registry, request, None, engine=engine)
    assert engine.closed == 0


@pytest.mark.parametrize("given", [["build", "digits"], ["build", "digits", "--option", "x=1"]])
def test_a_command_leaves_no_worker_behind(
    digits_registry: Path, monkeypatch: pytest.MonkeyPatch, given: list[str]
) -> None:
    """A command owns its engine, so it closes it whatever comes of the command."""
    closed: list[LocalEngine] = []
    monkeypatch.setattr(LocalEngine, "close", lambda engine: closed.append(engine))
    main(["-C", str(digits_registry), *given, "--jobs", "2"])
    assert [engine.jobs for engine in closed] == [2]

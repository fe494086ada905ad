"""What is offered for a reference that is typed in part."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

import tfrecreg
from tfrecreg.core.terminal.complete import Complete, references, releases


@pytest.fixture
def at_root(tmp_path: Path) -> click.Context:
    """The context of a command in a registry where `a` has two releases and `b` one."""
    registry = tfrecreg.init(tmp_path / "registry", with_dvc=False)
    for name, counts in (("a", (1, 2)), ("b", (1,))):
        for count in counts:
            registry[name].build(data={"train": [{"x": n} for n in range(count)]})
            registry[name].release()
    root = click.Context(click.Command("tfrecreg"))
    root.params["registry"] = str(tmp_path / "registry")
    return root


def offered(complete: Complete, ctx: click.Context, typed: str) -> list[str]:
    return [each.value for each in complete(ctx, click.Argument(["x"]), typed)]


def test_releases_are_offered_from_the_newest(at_root: click.Context) -> None:
    every = offered(releases, at_root, "a")
    assert every[0] == "a@latest"
    assert every[-1] == "a@1.0.0"
    assert len(every) == 3
    assert offered(releases, at_root, "a@") == every


def test_datasets_come_before_their_releases(at_root: click.Context) -> None:
    assert offered(references, at_root, "") == ["a", "b"]
    assert offered(references, at_root, "b") == ["b", "b@latest", "b@1.0.0"]
    assert offered(references, at_root, "b@") == ["b@latest", "b@1.0.0"]

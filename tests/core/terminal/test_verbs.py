"""Options of commands that are made of verbs."""

from __future__ import annotations

import click

from tfrecreg.cli.app import app


def options(path: str) -> dict[str, click.Option]:
    command: click.Command = app
    for name in path.split():
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), name)
        assert found is not None
        command = found
    return {each.name or "": each for each in command.params if isinstance(each, click.Option)}


def test_help_speaks_of_options_and_of_defaults() -> None:
    found = options("check")
    assert found["only"].help == "Run only these validators. Default: all."
    assert str(found["source"].help).startswith("With --raw: find the items of this source")
    assert found["options"].opts == ["--option"]
    assert found["options"].help == "Options of the source. Repeatable."
    assert isinstance(found["fail_on"].type, click.Choice)
    assert [*found["fail_on"].type.choices] == ["error", "warning", "never"]
    assert str(options("head")["where"].help).endswith(
        "\"label = 'cat' AND width >= 224\". `tfrecreg query TARGET` shows the columns."
    )
    (compression,) = [options("build")["compression"].type]
    assert isinstance(compression, click.Choice)
    assert [*compression.choices] == ["none", "gzip"]

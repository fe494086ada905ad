"""What the help says of each command, in the list of commands and on its own page."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
import pytest

from tfrecreg.cli.app import app
from tfrecreg.cli.main import main
from tfrecreg.core.terminal.session import LazyGroup


def tree(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    if path:
        yield " ".join(path), command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            member = command.get_command(context, name)
            assert member is not None, f"{name} is listed and not there"
            yield from tree(member, (*path, name))


def lines(group: LazyGroup, path: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Each command with its line in its group's help."""
    context = click.Context(group)
    for name in group.list_commands(context):
        yield " ".join((*path, name)), group.lines[name]
        member = group.get_command(context, name)
        if isinstance(member, LazyGroup):
            yield from lines(member, (*path, name))


COMMANDS = dict(tree(app))
LINES = dict(lines(app))  # type: ignore[arg-type]  # it is a LazyGroup, which click's types hide
LEAVES = [name for name, command in COMMANDS.items() if not isinstance(command, click.Group)]


def test_the_commands_are_in_groups_below_three_to_begin_with(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    headings = re.findall(r"^(\S.*):$", shown, re.MULTILINE)
    ours = ["Start here", "Datasets", "Verify", "Ask", "Move", "Extend"]
    assert headings == ["Options", *ours]
    begin, _, listed = shown.partition("Options:\n")
    lines = begin.splitlines()[4:7]
    assert [re.findall(r"tfrecreg ([a-z]+)", line) for line in lines] == [
        ["demo"],
        ["check"],
        ["init", "build"],
    ]
    assert all(line.startswith("    tfrecreg ") and len(line) <= 80 for line in lines)
    named = re.findall(r"^  ([a-z]+) ", listed.partition("Start here:\n")[2], re.MULTILINE)
    assert named == [name for name in COMMANDS if " " not in name]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_line_in_the_list_is_the_first_line_of_the_help(name: str) -> None:
    first = (COMMANDS[name].help or "").partition("\n")[0]
    assert first == f"{LINES[name]}."


@pytest.mark.parametrize("name", LEAVES)
def test_every_command_has_json_and_every_option_a_help_text(name: str) -> None:
    options = [each for each in COMMANDS[name].params if isinstance(each, click.Option)]
    assert "--json" in [option for each in options for option in each.opts]
    assert [each.opts for each in options if not str(each.help).endswith(".")] == []

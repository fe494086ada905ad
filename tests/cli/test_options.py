"""The options of all commands: names, values and defaults as `options.txt` lists them.

`PYTHONPATH=.:tests/support:plugins python tests/cli/test_options.py` writes the list anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from tfrecreg.cli.app import app

LIST = Path(__file__).with_name("options.txt")


def commands(group: click.Group, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """All commands, those of groups by two words."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{path}{name} ")
        else:
            yield f"{path}{name}", command


def described(path: str, each: click.Parameter) -> str:
    """An option or argument in a line: names, metavar, type, default and what it may be."""
    names = "/".join(sorted([*each.opts, *each.secondary_opts]))
    facts = [names, str(each.metavar), type(each.type).__name__]
    if isinstance(each.type, click.Choice):
        facts.append("|".join(each.type.choices))
    facts.append(f"default={each.default!r}".replace("Sentinel.UNSET", "None"))
    facts += [f"env={each.envvar}"] if each.envvar else []
    facts += [word for word in ("is_flag", "multiple", "required") if getattr(each, word, False)]
    facts += [f"nargs={each.nargs}"] if each.nargs != 1 else []
    return " ".join([path, *facts])


def listed() -> list[str]:
    """All options in order of their names; arguments in their order."""
    lines = []
    for path, command in sorted(commands(app)):
        options = [each for each in command.params if isinstance(each, click.Option)]
        arguments = [each for each in command.params if not isinstance(each, click.Option)]
        lines += [described(path, each) for each in arguments]
        lines += sorted(described(path, each) for each in options)
    return lines


def test_options_keep_their_names_values_and_defaults() -> None:
    assert listed() == LIST.read_text().splitlines()


if __name__ == "__main__":
    LIST.write_text("\n".join(listed()) + "\n")

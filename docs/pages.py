"""The reference pages: every `--help` page, and every finding code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from tfrecreg.cli.app import app
from tfrecreg.core.plugins.bundled import COMMANDS_BY_GROUP
from tfrecreg.core.values.codes import CORE_CODES, PAGES, codes_on, former_codes
from tfrecreg.core.values.codes.pages import read_page
from tfrecreg.core.values.findings import Code

__all__ = ["cli_page", "codes_page", "command_tree"]

WIDTH = 80


def command_tree(
    command: click.Command = app, path: Sequence[str] = ("tfrecreg",)
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command with its words, a group before its members."""
    yield tuple(path), command
    if isinstance(command, click.Group):
        with click.Context(command, info_name=path[-1]) as ctx:
            for name in command.list_commands(ctx):
                member = command.get_command(ctx, name)
                assert member is not None, name
                yield from command_tree(member, (*path, name))


def cli_page() -> str:
    """The page `cli.md` of the site."""
    parts = [
        "# The command line",
        "This reference has the help of each command, in the groups of `tfrecreg --help`. Results "
        "go to\nstdout, messages and progress to stderr; every command takes `--json`. "
        "[Reference](reference.md)\nhas the exit codes and the JSON of `check`.\n\n"
        "An error is one line and a hint. `TFRECREG_DEBUG=1` adds its traceback on stderr, also "
        "that of a\nworker process or a plugin.",
    ]
    groups = {first: title for title, group in COMMANDS_BY_GROUP.items() for first in [*group][:1]}
    for path, command in command_tree():
        if path[1:] and path[-1] in groups:
            parts.append(f"## {groups.pop(path[-1])}")
        level = "###" if path[1:] else "##"
        parts += [f"{level} {' '.join(path)}", f"```text\n{_help(path, command)}\n```"]
    return "\n\n".join(parts) + "\n"


def _help(path: Sequence[str], command: click.Command) -> str:
    settings = {**command.context_settings, "help_option_names": ["-h", "--help"]}
    name = " ".join(path)
    with click.Context(command, info_name=name, terminal_width=WIDTH, **settings) as ctx:
        return command.get_help(ctx)


def codes_page() -> str:
    """The page `codes.md` of the site."""
    parts = [
        "# Finding codes",
        "This reference lists the finding codes. A code never changes its meaning, and its number "
        "is never used\nagain. `tfrecreg explain CODE` prints its part of this page. The severity "
        "applies unless a gate in\n`tfrecreg.toml` overrides it. Plugins may define their own "
        "codes: `tfrecreg explain` without a code\nlists those as well.",
    ]
    codes = CORE_CODES.values()
    rows = [f"| [{c.code}](#{_anchor(c)}) | {c.severity.value} | {c.summary} |" for c in codes]
    parts.append("\n".join(["| code | severity | summary |", "|---|---|---|", *rows]))
    for page in PAGES:
        head = read_page(page).partition("\n\n## ")[0]
        parts.append(f"#{head}")
        for code in codes_on(page).values():
            parts += [f"### {code.code} {code.rule}", f"{code.summary}. ({code.severity.value})"]
            parts.append(code.page.strip())
            if code.tensorflow:
                outcomes = " or ".join(outcome.value for outcome in code.tensorflow)
                parts.append(f"TensorFlow: {outcomes}.")
            parts.append(f"What to do: {code.hint}.")
    parts += ["## Former codes", "Manifests and ledgers of older builds have them."]
    former = former_codes().values()
    rows = [f"| {each.code} | {', '.join(each.became)} | {each.about} |" for each in former]
    parts.append("\n".join(["| code | became | what it stood for |", "|---|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def _anchor(code: Code) -> str:
    return f"{code.code} {code.rule}".lower().replace(" ", "-")

"""The options of commands and the keywords of verbs: the same names and defaults."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import click
import pytest

import tfrecreg as tr
from tfrecreg.cli.app import app

VERBS: dict[str, tuple[Callable[..., Any], ...]] = {
    "adopt": (tr.Dataset.adopt,),
    "audit": (tr.Registry.audit,),
    "build": (tr.Dataset.build,),
    "check": (tr.check, tr.Build.check, tr.Registry.check),
    "diff": (tr.diff, tr.Build.diff),
    "digest": (tr.digest, tr.Build.digest),
    "export": (tr.export, tr.Build.export),
    "gate": (tr.Build.gate,),
    "gc": (tr.Registry.gc,),
    "head": (tr.head, tr.Build.head),
    "init": (tr.init,),
    "list": (tr.Registry.catalog,),
    "log": (tr.Dataset.log,),
    "pipeline": (tr.Registry.pipeline,),
    "pull": (tr.Release.pull, tr.Registry.pull),
    "push": (tr.Release.push, tr.Registry.push),
    "query": (tr.query, tr.Build.query),
    "release": (tr.Dataset.release,),
    "repair": (tr.Build.repair,),
    "report": (tr.report, tr.Build.report, tr.Registry.report),
    "salvage": (tr.salvage,),
    "schema accept": (tr.Build.accept_schema,),
    "schema check": (tr.Build.check_schema,),
    "schema diff": (tr.Build.diff_schema,),
    "schema infer": (tr.Build.infer_schema,),
    "show": (tr.Build.describe,),
    "site": (tr.Registry.site,),
    "stats": (tr.stats, tr.Build.stats),
    "tag": (tr.Release.tag,),
    "view": (tr.Build.view, tr.Registry.view),
    "yank": (tr.Release.yank,),
}
"""Commands, and the verbs and functions that do the same."""

ALONE = {
    "completion": "is about the shell",
    "demo": "shows the commands",
    "explain": "prints what `Finding` and the page of codes have",
    "plugins list": "is about the installation",
    "plugins new": "writes a package",
    "plugins show": "is about the installation",
    "plugins trust": "is about this machine",
    "schema show": "prints `Dataset.schema`, or `Build.schema`, in the form of another tool",
}
"""Commands without a verb, and why."""

OUTPUT = {"json", "format", "output", "save_json", "exit_code"}
"""Options of what a command prints: a verb returns it."""

CALLER = {"progress", "registry"}
"""Keywords for what `-C` and the terminal are to commands."""

ARGUMENTS = {"self", "targets", "target", "argument", "before", "after", "other", "folder", "sql"}
"""Arguments of verbs that are arguments of commands, too."""

ENGINE = {"engine", "engine_option", "jobs"}
"""Three options are one keyword, `engine`, which `tr.engine(name, jobs=, …)` makes."""

ONLY_OPTIONS = {
    "adopt --dry-run": "prints a plan",
    "adopt --in-place": "`how` is one keyword for two flags that exclude each other",
    "adopt --link": "as `--in-place`",
    "adopt --options": "`pixels` has the three numbers, not a text",
    "build --dry-run": "prints a plan",
    "build --release": "`Dataset.release` follows",
    "check --metrics": "is a file for DVC, of a pipeline, which runs commands",
    "check --plots": "as `--metrics`",
    "diff --records": "lists more of the result in the output",
    "export --suffix": "is short for an option of an exporter",
    "gate --until": "is for DVC, which reruns a command whose text changed",
    "head --open": "a notebook shows the images",
    "head --save": "as `--open`: `ShownRecord.images` has the bytes",
    "init --dvc": "`with_dvc`, because `init(dvc=…)` reads like a name or a version",
    "report --open": "a notebook shows the page",
    "show --code": "prints a program",
    "show --provenance": "prints more of the manifest, which a handle has",
    "view --no-open": "a notebook shows a frame",
    "stats --pbtxt": "prints: `Stats.pbtxt` makes the same text",
}
"""Options without a keyword in any verb, and why."""

ONLY_KEYWORDS = {
    "adopt how": "two flags exclude each other",
    "adopt pixels": "as `adopt --options`",
    "build data": "only a program has such data",
    "build key": "as `data`",
    "build labels": "as `data`",
    "init nested": "for programs that make registries inside of others",
    "init with_dvc": "as `init --dvc`",
}
"""Keywords without an option, and why."""

NARROWER = {
    "Versioned.check": {"ignore_missing": "there is one target"},
    "check": {"ignore_missing": "targets are named"},
    "Registry.check": {
        "same_as": "there are several datasets",
        **dict.fromkeys(("expect", "source", "options"), "as `same_as`"),
    },
    "Registry.report": {
        "against": "there are several datasets",
        "schema": "as `against`",
    },
    "Versioned.digest": {"split": "is for files"},
}
"""Verbs that lack keywords of others for the same command, and why."""

DEFAULTS = {
    "build jobs": "a program starts no processes unasked: it may lack the guard of `__main__`",
    "release bump": "the option has none because `--version` excludes it",
    "report output": "a program may want no file",
}
"""Other defaults, and why."""


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


COMMANDS = dict(commands(app))
PAIRS = [(path, verb) for path, verbs in VERBS.items() for verb in verbs]


def options(path: str) -> dict[str, click.Option]:
    """The options of a command by the names that keywords have."""
    found = {}
    for each in COMMANDS[path].params:
        if isinstance(each, click.Option):
            name = max(each.opts, key=len).lstrip("-").replace("-", "_")
            plural = each.multiple and name in ("feature", "option", "split")
            found[f"{name}s" if plural else name] = each
    return found


def keywords(verb: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters of a verb that are options of its command."""
    kinds = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    return {
        name: each
        for name, each in inspect.signature(verb).parameters.items()
        if each.kind in kinds and name not in ARGUMENTS
    }


def test_every_command_has_a_verb_or_a_reason() -> None:
    assert {*VERBS, *ALONE} == set(COMMANDS)
    assert not set(VERBS) & set(ALONE)


@pytest.mark.parametrize("path", VERBS)
def test_names_are_the_same(path: str) -> None:
    given = set(options(path)) - ENGINE - {"json"}
    taken = set().union(*(keywords(verb) for verb in VERBS[path])) - CALLER - {"engine"}
    lacking = {f"{path} --{name.replace('_', '-')}" for name in given - taken - OUTPUT}
    assert lacking == {each for each in ONLY_OPTIONS if each.rpartition(" ")[0] == path}
    own = {f"{path} {name}" for name in taken - given} - {"build jobs", "init jobs"}
    assert own == {each for each in ONLY_KEYWORDS if each.rpartition(" ")[0] == path}
    for verb in VERBS[path]:
        assert taken - set(keywords(verb)) == set(NARROWER.get(verb.__qualname__, ())), verb
    takes_engine = {"engine" in keywords(verb) for verb in VERBS[path]}
    assert takes_engine == {"engine" in options(path)}


@pytest.mark.parametrize(("path", "verb"), PAIRS)
def test_defaults_are_the_same(path: str, verb: Callable[..., Any]) -> None:
    taken = keywords(verb)
    for name, option in options(path).items():
        if name not in taken or name in ENGINE or f"{path} {name}" in DEFAULTS:
            continue
        default = taken[name].default
        if option.required:
            assert default is inspect.Parameter.empty, name
        elif option.is_flag or option.multiple or not isinstance(option.default, str | int):
            assert not default, name
        else:
            assert default == option.default, name


def test_no_reason_is_left_over() -> None:
    known = {f"{path} {name}" for path, verb in PAIRS for name in keywords(verb)}
    assert {*DEFAULTS, *ONLY_KEYWORDS} <= known
    assert {verb.__qualname__ for _, verb in PAIRS} >= set(NARROWER)

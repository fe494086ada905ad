"""Options of commands, made from the verbs of :mod:`tfrecreg.library`.

A verb is declared once, as a method of a handle. Its parameters become the options of the command.
A parameter's annotation gives the type of the option. The parameter's line in the docstring gives
the option's help.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from inspect import Parameter, cleandoc, signature
from typing import Any, TypeVar, get_args

import click

from tfrecreg.core.terminal import complete

F = TypeVar("F", bound=Callable[..., Any])

_TRAVELLING = frozenset({"self", "engine", "progress"})
_SINGULAR = {"features": "feature", "options": "option", "splits": "split"}
"""Options that may be repeated, once per value."""
_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "against": {"metavar": "REF", "shell_complete": complete.references},
    "features": {"metavar": "GLOB"},
    "only": {"metavar": "V,..", "shell_complete": complete.validators},
    "options": {"metavar": "K=V"},
    "output": {"metavar": "DIR", "shell_complete": complete.folders},
    "raw": {"metavar": "PATH", "shell_complete": complete.folders},
    "remote": {"metavar": "NAME", "flags": ("-r", "--remote")},
    "report": {"metavar": "FILE", "shell_complete": complete.files},
    "schema": {"metavar": "FILE", "shell_complete": complete.files},
    "skip": {"metavar": "V,..", "shell_complete": complete.validators},
    "source": {"metavar": "S", "shell_complete": complete.sources},
    "split": {"metavar": "SPLIT"},
    "to": {"metavar": "FORMAT"},
    "where": {"metavar": "SQL"},
}
"""Settings that cannot be derived from the annotations of parameters."""
_SEVERAL = re.compile(r"(Mapping|Sequence|Iterable)\[|Words\b")
_CHOICE = re.compile(r"Literal\[([^\]]*)\]")
_LINE = re.compile(r"^    (\w+): (.*(?:\n     .*)*)", re.MULTILINE)


def options_of(verb: str, *without: str, **settings: str | Mapping[str, Any]) -> Callable[[F], F]:
    """Give a command the options of a verb. The command gets the values by parameter name.

    Args:
        verb: the module in the library and the method, for example ``files:Verbs.check``.
        without: names of parameters that the command declares itself or does not offer as options.
        settings: for each parameter, the metavar of its option, or several settings of the option.
    """
    place, _, name = verb.partition(":")
    module = import_module(f"tfrecreg.library.{place}")
    kind, _, method = name.partition(".")
    function = getattr(vars(module)[kind], method)
    parameters = {
        each.name: each
        for each in signature(function).parameters.values()
        if each.name not in _TRAVELLING and each.kind is not Parameter.VAR_POSITIONAL
    }
    _, _, described = cleandoc(function.__doc__ or "").partition("\nArgs:\n")
    lines = dict(_LINE.findall(described.partition("\n\n")[0]))

    def decorate(command: F) -> F:
        for each in reversed(parameters.values()):
            name = each.name
            if name not in without:
                own = settings.get(name, {})
                more = {"metavar": own} if isinstance(own, str) else own
                given = {**_SETTINGS.get(name, {}), **_typed(each, vars(module)), **more}
                several = "multiple" in given and not str(given.get("metavar")).endswith(",..")
                text = _help(lines.get(name, ""), parameters) + (" Repeatable." if several else "")
                if "multiple" in given and not several:
                    given |= {"multiple": False, "callback": _names}
                flags = given.pop("flags", (_flag(name),))
                command = click.option(*flags, name, **{"help": text, **given})(command)
        return command

    return decorate


def _flag(name: str) -> str:
    return f"--{_SINGULAR.get(name, name).replace('_', '-')}"


def _typed(each: Parameter, known: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of an option, from a parameter's annotation and default."""
    text = each.annotation
    if text == "bool":
        return {"is_flag": True}
    found: dict[str, Any] = {}
    words = [*get_args(known.get(text.removesuffix(" | None")))]  # the values of a Literal's alias
    if choice := _CHOICE.match(text):
        words = re.findall(r"'([^']*)'", choice[1])
    if words and all(isinstance(word, str) for word in words):
        found["type"] = click.Choice(words)
    elif text in ("int", "int | None"):
        found |= {"type": int, "metavar": "N"}
    elif _SEVERAL.match(text):
        found["multiple"] = True
    if each.default is Parameter.empty:
        found["required"] = True
    elif each.default and not found.get("multiple"):
        found |= {"default": each.default, "show_default": True}
    return found


def _help(text: str, parameters: Mapping[str, Any]) -> str:
    """Turn the description of a parameter in a docstring into help for the command line."""
    text = text if text.startswith("`") else f"{text[:1].upper()}{text[1:]}"
    text = re.sub(r"\s+", " ", text)
    text = re.sub(r"; [Nn]one for ([^.]*)\.", r". Default: \1.", text)
    text = re.sub(r"``(tfrecreg [^`]*)``", r"`\1`", text)
    text = re.sub(r"``([^`]*)``", lambda code: f'"{code[1]}"' if " " in code[1] else code[1], text)
    return re.sub(
        r"`(\w+)`", lambda name: _flag(name[1]) if name[1] in parameters else name[0], text
    )


def _names(ctx: click.Context, param: click.Parameter, text: str | None) -> tuple[str, ...]:
    del ctx, param
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())

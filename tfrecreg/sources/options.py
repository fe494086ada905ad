"""The options of a source: from text or TOML to its frozen dataclass, and back to text.

The annotations of the dataclass are the types; :mod:`tfrecreg.sources.option_types` lists them.
:func:`options_as_text` gives exactly what :func:`parse_options` reads back as the same values.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from itertools import pairwise
from typing import Any, TypeVar, get_type_hints

from tfrecreg.errors import PluginError, UsageError
from tfrecreg.sources import option_types as types
from tfrecreg.suggest import did_you_mean, listed
from tfrecreg.text import safe

__all__ = ["OptionInfo", "describe_options", "options_as_text", "parse_options"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OptionInfo:
    """One option, for listings."""

    name: str
    type: str
    """In words: ``a whole number``."""
    default: str | None
    """As text; None where the option must be given."""
    help: str
    """The docstring under the field, or its ``metadata["help"]``; one line."""


def parse_options(
    options_class: type[T], pairs: Mapping[str, Any] | Sequence[str], *, of: str = ""
) -> T:
    """Make the options from what was given.

    Args:
        options_class: a frozen dataclass.
        pairs: name to value, as TOML has it or as text; or ``NAME=VALUE`` strings.
        of: the source's name, for messages.

    Raises:
        UsageError: an option that there is not, one that is missing or given twice, or a value
            of another type; also what the class itself raises as a ValueError.
        PluginError: the class is no frozen dataclass, or has a field of a type that is not known.
    """
    hints = _hints(options_class)
    owner = f" of `{safe(of)}`" if of else ""
    given = dict(pairs) if isinstance(pairs, Mapping) else _split(pairs, owner)
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name not in hints:
            raise UsageError(
                f"no option named `{safe(name, limit=60)}`{owner}{did_you_mean(name, hints)}",
                hint=f"there are {listed(sorted(hints))}" if hints else "it takes no options",
            )
        try:
            values[name] = types.read(hints[name], value)
        except types.Unfit:
            raise UsageError(
                f"the option `{name}`{owner} should be {types.label(hints[name])}, "
                f"found {types.shown(value)}",
                hint=f"--option {name}=…",
            ) from None
    for found in _fields(options_class):
        if found.name not in values and _default(found) is MISSING:
            raise UsageError(
                f"the option `{found.name}`{owner} must be given",
                hint=f"`--option {found.name}=…`: {types.label(hints[found.name])}",
            )
    try:
        return options_class(**values)
    except ValueError as error:
        raise UsageError(
            f"the options{owner} do not fit: {safe(str(error))}",
            hint="docs/sources tells what each option takes",
        ) from error


def options_as_text(instance: object) -> dict[str, str]:
    """Every option, defaults included, as ``--option`` takes it; in order of name."""
    hints = _hints(type(instance))
    return {name: types.write(hints[name], getattr(instance, name)) for name in sorted(hints)}


def describe_options(options_class: type[Any]) -> list[OptionInfo]:
    """The options for a help listing, in the order of the class."""
    hints = _hints(options_class)
    docs = _docs(options_class)
    return [
        OptionInfo(
            name=found.name,
            type=types.label(hints[found.name]),
            default=(
                None
                if _default(found) is MISSING
                else types.write(hints[found.name], _default(found))
            ),
            help=" ".join(str(found.metadata.get("help") or docs.get(found.name, "")).split()),
        )
        for found in _fields(options_class)
    ]


def _split(pairs: Sequence[str], owner: str) -> dict[str, str]:
    given: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        name = name.strip()
        if not equals or not name:
            raise UsageError(
                f"the option `{safe(pair, limit=60)}`{owner} is not of the form `NAME=VALUE`",
                hint="as in `--option verify=decode`",
            )
        if name in given:
            raise UsageError(
                f"the option `{safe(name, limit=60)}`{owner} is given twice", hint="give it once"
            )
        given[name] = value
    return given


def _fields(options_class: type[Any]) -> list[Field[Any]]:
    return [found for found in fields(options_class) if found.init]


def _default(found: Field[Any]) -> Any:
    return found.default if found.default_factory is MISSING else found.default_factory()


def _hints(options_class: type[Any]) -> dict[str, Any]:
    """Field to type; every type checked to be one that options can have."""
    name = f"`{safe(options_class.__module__)}.{safe(options_class.__qualname__)}`"
    parameters = getattr(options_class, "__dataclass_params__", None)
    if not is_dataclass(options_class) or not getattr(parameters, "frozen", False):
        raise PluginError(
            f"the options {name} are no frozen dataclass",
            hint="the plugin is at fault: docs/plugins.md says what `Options` is",
        )
    try:
        hints = get_type_hints(options_class)
    except (NameError, TypeError, AttributeError) as error:
        raise PluginError(
            f"the types of the options {name} cannot be found: {safe(str(error))}",
            hint="import them at the top of the module, outside `if TYPE_CHECKING`",
        ) from error
    found = {one.name: hints[one.name] for one in _fields(options_class)}
    for field_name, hint in found.items():
        if not types.known(hint):
            raise PluginError(
                f"the option `{field_name}` of {name} has a type that options cannot have",
                hint="the plugin is at fault: docs/plugins.md lists the types",
            )
    return found


def _docs(options_class: type[Any]) -> dict[str, str]:
    """The docstrings under the fields, those of base classes too. None where there is no source."""
    docs: dict[str, str] = {}
    for base in reversed(options_class.__mro__[:-1]):
        try:
            source = textwrap.dedent(inspect.getsource(base))
            body = ast.parse(source).body[0]
        except (OSError, TypeError, SyntaxError, IndexError):
            continue
        docs.update(_docs_in(body))
    return docs


def _docs_in(node: ast.AST) -> Iterator[tuple[str, str]]:
    statements = getattr(node, "body", [])
    for statement, below in pairwise(statements):
        if (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
            and isinstance(below.value.value, str)
        ):
            yield statement.target.id, below.value.value

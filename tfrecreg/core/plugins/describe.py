"""The options of a source and the limits of a validator, in words."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields
from itertools import pairwise
from typing import Any, get_type_hints

from tfrecreg.core.values.typed_values import as_text, is_required, label


@dataclass(frozen=True, slots=True)
class OptionInfo:
    """One option of a source, or one limit of a validator."""

    name: str
    type: str
    """The type in words: ``a whole number``."""
    default: str | None
    """The default as text; None without one."""
    is_required: bool
    help: str
    """The docstring below the field, or its ``metadata["help"]``; one line."""


def describe_options(kind: type[Any], *, text: bool = True) -> list[OptionInfo]:
    """The options that a dataclass holds, in the order of its fields."""
    hints = get_type_hints(kind, include_extras=True)
    docs = _docs(kind)
    found = []
    for each in fields(kind):
        if not each.init:
            continue
        default = None
        if not is_required(each):
            made = each.default if each.default_factory is MISSING else each.default_factory()
            default = as_text(made) if text or made is not None else None
        words = str(each.metadata.get("help") or docs.get(each.name, ""))
        found.append(
            OptionInfo(
                name=each.name,
                type=label(hints[each.name], text=text),
                default=default,
                is_required=is_required(each),
                help=" ".join(words.split()),
            )
        )
    return found


def _docs(kind: type[Any]) -> dict[str, str]:
    """Docstring by field, those of base classes too; empty without source code."""
    docs: dict[str, str] = {}
    for base in reversed(kind.__mro__[:-1]):
        try:
            body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
        except (OSError, TypeError, SyntaxError, IndexError):
            continue
        docs.update(_docstrings(body))
    return docs


def _docstrings(node: ast.AST) -> Iterator[tuple[str, str]]:
    for statement, below in pairwise(getattr(node, "body", [])):
        match statement, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                yield name, text

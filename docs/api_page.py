"""The reference page of `tfrecreg.api` and `tfrecreg.testing`, from their docstrings."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import tfrecreg.api
import tfrecreg.testing

_GROUP = re.compile(r"^- (?P<title>[^:`]+): ", re.MULTILINE)
_ROLE = re.compile(r":\w+:`~?(?:[\w.]+\.)?(\w+)`")
_ELSEWHERE = re.compile(r": see `tfrecreg\.[\w.]+`")
_HOOKIMPL = "Marks a function of a plugin as the implementation of the hook of the same name."


def api_page() -> str:
    """The page: each name, in the groups of the module's docstring, and the members of classes."""
    parts = [
        "# Plugin API",
        "This reference lists the names that a plugin imports, from `tfrecreg.api`, and those for "
        "its tests, from\n`tfrecreg.testing`. They keep their meaning until the next major "
        "version. "
        "[Writing a plugin](plugins.md) shows their use.\nThis page is made from the docstrings.",
    ]
    for title, names in _groups():
        parts += [f"## {title[0].upper()}{title[1:]}", *_entries(tfrecreg.api, names)]
    parts += [
        "## Tests of plugins",
        "From `tfrecreg.testing`; [testing a plugin](plugin-tests.md).",
    ]
    parts += _entries(tfrecreg.testing, tfrecreg.testing.__all__)
    return "\n\n".join(parts) + "\n"


def _groups() -> Iterator[tuple[str, list[str]]]:
    """The groups of the docstring of `tfrecreg.api`; each name once, all names."""
    text = tfrecreg.api.__doc__ or ""
    known, seen = set(tfrecreg.api.__all__), set[str]()
    starts = [*_GROUP.finditer(text)]
    ends = [each.start() for each in starts[1:]] + [text.rfind("\n\n")]
    for start, end in zip(starts, ends, strict=True):
        names = [each for each in re.findall(r"`(\w+)`", text[start.end() : end]) if each in known]
        yield start["title"], [each for each in names if each not in seen]
        seen |= set(names)
    missing = sorted(known - seen)
    if missing:
        yield "other names", missing


def _entries(module: Any, names: list[str]) -> Iterator[str]:
    for name in names:
        thing = getattr(module, name)
        heading = f"### `{name}`"
        if inspect.isfunction(thing):
            heading = f"### `{name}{_signature(thing)}`"
        yield heading
        is_ours = getattr(thing, "__module__", "").startswith("tfrecreg.")
        text = inspect.getdoc(thing) if is_ours else _constant_text(name)
        yield _prose((text if name != "hookimpl" else _HOOKIMPL) or "")
        if inspect.isclass(thing) and is_ours:
            rows = list(_members(thing))
            if rows:
                yield "\n".join(["| member | meaning |", "|---|---|", *rows])


def _constant_text(name: str) -> str:
    """The docstring below the definition of a constant or a type, whose own is that of its type."""
    for path in sorted(Path(tfrecreg.api.__file__).parent.rglob("*.py")):
        source = path.read_text("utf-8")
        if f"\n{name} = " in source:
            for statement, below in pairwise(ast.parse(source).body):
                match statement, below:
                    case (
                        ast.Assign(targets=[ast.Name(id=found)]),
                        ast.Expr(value=ast.Constant(value=str(text))),
                    ) if found == name:
                        return inspect.cleandoc(text)
    return ""


def _signature(thing: Any) -> str:
    names = []
    for each in inspect.signature(thing).parameters.values():
        star = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        default = "" if each.default is each.empty else "=…"
        names.append(f"{star}{each.name}{default}")
    return f"({', '.join(names)})"


def _members(kind: type) -> Iterator[str]:
    """A row for each public field and method that a class, or a base of ours, documents."""
    seen = set()
    for base in kind.__mro__:
        if not base.__module__.startswith("tfrecreg."):
            continue
        (body,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        assert isinstance(body, ast.ClassDef)
        for name, text in _documented(body):
            if name in seen or name.lstrip("*").startswith("_"):
                continue
            seen.add(name)
            yield f"| `{name}` | {_first(text)} |"


def _documented(body: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for statement, below in pairwise([*body.body, ast.Pass()]):
        if isinstance(statement, ast.FunctionDef):
            text = ast.get_docstring(statement)
            is_property = any(ast.unparse(each) == "property" for each in statement.decorator_list)
            names = ", ".join(each.arg for each in statement.args.args[1:])
            if text:
                yield statement.name if is_property else f"{statement.name}({names})", text
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            if body.name.endswith("Record") and "ClassVar" in ast.unparse(statement.annotation):
                continue  # for the core
            match below:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    yield statement.target.id, text
                case _:
                    yield statement.target.id, f"`{ast.unparse(statement.annotation)}`"


def _first(text: str) -> str:
    """The first paragraph, for a cell of a table."""
    paragraph = inspect.cleandoc(text).partition("\n\n")[0]
    return _plain(" ".join(paragraph.split())).replace("|", "\\|")


def _prose(text: str) -> str:
    """The paragraphs of a docstring before its sections and examples."""
    kept = []
    for paragraph in text.split("\n\n"):
        if re.match(r"(Args|Returns|Raises|Yields|Example|Attributes):", paragraph):
            break
        if paragraph.startswith((" ", ">>>", "=")):
            continue
        words = _plain(" ".join(paragraph.split()))
        kept.append(re.sub(r":\s*$", ".", words))
    return "\n\n".join("\n".join(textwrap.wrap(each, 120)) for each in kept) or "—"


def _plain(text: str) -> str:
    """Markdown of a docstring's words."""
    text = _ROLE.sub(r"`\1`", text).replace("``", "`")
    text = _ELSEWHERE.sub("", text)
    return re.sub(r"(?<!`)::", ":", text)

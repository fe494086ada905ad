"""Small faults that a program may have, one at a time: mutations of a module's source."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["Mutation", "compiles", "mutated", "mutations"]


class Mutation(NamedTuple):
    """A stretch of a source, and its replacement."""

    line: int
    """Number of the line in which it begins, from 1."""
    start: int
    """Offset in the source, in UTF-8 bytes."""
    end: int
    text: str

    def describe(self, source: str) -> str:
        """Both versions, on one line each."""
        old = source.encode()[self.start : self.end].decode()
        return f"{_short(old)} → {_short(self.text) or '(nothing)'}"


def _short(text: str) -> str:
    return " ".join(text.split())[:60]


def mutated(source: str, mutation: Mutation) -> str:
    """The source with the mutation in it."""
    data = source.encode()
    return (data[: mutation.start] + mutation.text.encode() + data[mutation.end :]).decode()


_OPPOSITE: dict[type[ast.AST], str] = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "//",
    ast.FloorDiv: "*",
    ast.Div: "*",
    ast.Mod: "//",
    ast.LShift: ">>",
    ast.RShift: "<<",
    ast.BitAnd: "|",
    ast.BitOr: "&",
    ast.And: "or",
    ast.Or: "and",
}


def mutations(source: str) -> list[Mutation]:
    """All mutations of a module, in the order of its lines.

    They change what runs: comparisons, arithmetic, conditions, numbers, results, keywords that are
    left out and statements that are left out. Annotations, docstrings, the texts of errors, names
    that are exported and code for type checkers stay as they are.
    """
    return sorted(set(_in_body(ast.parse(source).body, _Places(source))))


def compiles(source: str) -> bool:
    """Whether a mutated source is Python: some places of a statement take no such change."""
    try:
        compile(source, "mutated", "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True


class _Places:
    """Offsets of nodes: a node has lines and columns in bytes."""

    def __init__(self, source: str) -> None:
        self.data = source.encode()
        self._starts = [0]
        for line in self.data.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def of(self, node: ast.expr | ast.stmt | ast.keyword) -> tuple[int, int]:
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
        start = self._starts[node.lineno - 1] + node.col_offset
        return start, self._starts[end_line - 1] + end_column

    def between(self, left: ast.expr, right: ast.expr) -> tuple[int, int]:
        """The operator between two operands, without its surroundings."""
        start, end = self.of(left)[1], self.of(right)[0]
        text = self.data[start:end]
        # Parentheses of the operands are there too: the rest is the operator.
        inner = text.lstrip(b" \t\n\\)").rstrip(b" \t\n\\(")
        begin = start + text.index(inner) if inner else start
        return begin, begin + len(inner)

    def whole(self, node: ast.expr | ast.stmt, text: str) -> Mutation:
        return Mutation(node.lineno, *self.of(node), text)


def _in_body(body: list[ast.stmt], places: _Places) -> Iterator[Mutation]:
    for statement in body:
        yield from _in_statement(statement, places)


def _in_statement(node: ast.stmt, places: _Places) -> Iterator[Mutation]:
    if isinstance(node, ast.Import | ast.ImportFrom | ast.Pass | ast.Global | ast.Nonlocal):
        return
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return  # a docstring, or an ellipsis
    if isinstance(node, ast.Assign) and any(
        isinstance(each, ast.Name) and each.id.startswith("__") for each in node.targets
    ):
        return
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        defaults = [*node.args.defaults, *(each for each in node.args.kw_defaults if each)]
        for default in defaults:
            yield from _in_expression(default, places)
        yield from _in_body(node.body, places)
        return
    if isinstance(node, ast.ClassDef):
        yield from _in_body(node.body, places)
        return
    if isinstance(node, ast.Raise):
        yield places.whole(node, "pass")
        return
    if isinstance(node, ast.Expr | ast.AugAssign | ast.Delete):
        yield places.whole(node, "pass")
    if isinstance(node, ast.Break):
        yield places.whole(node, "continue")
    if isinstance(node, ast.Continue):
        yield places.whole(node, "break")
    if isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        yield places.whole(node, "return None")
    for field in ("test", "iter", "value", "subject"):
        value = getattr(node, field, None)
        if isinstance(value, ast.expr):
            yield from _in_expression(value, places)
    if isinstance(node, ast.If | ast.While):
        yield places.whole(node.test, f"not ({ast.unparse(node.test)})")
    for item in getattr(node, "items", []):
        yield from _in_expression(item.context_expr, places)
    for field in ("body", "orelse", "finalbody"):
        yield from _in_body(getattr(node, field, []), places)
    for handler in getattr(node, "handlers", []):
        yield from _in_body(handler.body, places)
    for case in getattr(node, "cases", []):
        yield from _in_body(case.body, places)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _in_expression(root: ast.expr, places: _Places) -> Iterator[Mutation]:
    for node in ast.walk(root):
        if isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
            pairs = itertools.pairwise(operands)
            for (left, right), operator in zip(pairs, node.ops, strict=True):
                start, end = places.between(left, right)
                yield Mutation(left.end_lineno or 0, start, end, _OPPOSITE[type(operator)])
        elif isinstance(node, ast.BoolOp):
            for left, right in itertools.pairwise(node.values):
                start, end = places.between(left, right)
                yield Mutation(left.end_lineno or 0, start, end, _OPPOSITE[type(node.op)])
        elif isinstance(node, ast.BinOp) and type(node.op) in _OPPOSITE:
            start, end = places.between(node.left, node.right)
            yield Mutation(node.left.end_lineno or 0, start, end, _OPPOSITE[type(node.op)])
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield places.whole(node, ast.unparse(node.operand))
        elif isinstance(node, ast.IfExp):
            yield places.whole(node, f"({ast.unparse(node.body)})")
            yield places.whole(node, f"({ast.unparse(node.orelse)})")
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield places.whole(node, str(not node.value))
        elif isinstance(node, ast.Constant) and isinstance(node.value, int):
            yield places.whole(node, str(node.value + 1))
        elif isinstance(node, ast.Call):
            yield from _without_keywords(node, places)


def _without_keywords(node: ast.Call, places: _Places) -> Iterator[Mutation]:
    """A keyword argument less, such as a limit."""
    for keyword in node.keywords:
        if keyword.arg is None or keyword.arg in ("hint", "strict"):
            continue
        start, end = places.of(keyword)
        rest = places.data[end:]
        skipped = len(rest) - len(rest.lstrip(b" \n\t"))
        if rest[skipped : skipped + 1] == b",":
            end += skipped + 1
        yield Mutation(keyword.lineno, start, end, "")

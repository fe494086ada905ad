"""Drafting the lines of one feature from what was seen of it."""

from __future__ import annotations

from collections.abc import Iterator

from tfrecreg.example import Kind
from tfrecreg.schema.seen import KindSeen, Seen
from tfrecreg.schema.wording import counted
from tfrecreg.text import safe

__all__ = ["block", "draft_feature", "quoted"]

_TYPES = {Kind.BYTES: "BYTES", Kind.FLOAT: "FLOAT", Kind.INT64: "INT"}

_REPEATS = 5
"""A list of strings is worth drafting where each came so many times on average."""

_LABELS = frozenset({"category", "category_id", "class", "class_id", "classes", "target"})
"""Last parts of names that hold classes, besides those that end in ``label`` or ``labels``."""


def draft_feature(name: str, seen: Seen, examples: int) -> Iterator[str]:
    """The lines that declare a feature.

    Args:
        name: its name.
        seen: what was seen of it.
        examples: how many there were, with it or without.
    """
    try:
        shown = quoted(name)
    except UnicodeEncodeError:
        yield f"# Left out: `{safe(name)}`, a name that is not UTF-8."
        return
    usual = seen.usual()
    if usual is None:
        yield f"# in {_of(seen.unset, examples)}, never with a value, so its type is not known:"
        yield "# give it one, or make the source leave it out"
        yield from block("feature", f"name: {shown}", "lifecycle_stage: PLANNED")
        return
    kind = seen.kinds[usual]
    required = seen.examples == examples
    yield from _comments(seen, usual, kind, examples)
    body = [f"name: {shown}", f"type: {_TYPES[usual]}"]
    if required:
        body += block("presence", "min_fraction: 1", "min_count: 1")
    body += _length(kind, required)
    body += _domain(name, usual, kind)
    yield from block("feature", *body)


def _comments(seen: Seen, usual: Kind, kind: KindSeen, examples: int) -> Iterator[str]:
    if len(seen.kinds) > 1:
        types = ", ".join(
            f"{_TYPES[each]} in {seen.kinds[each].examples}" for each in sorted(seen.kinds)
        )
        yield f"# two types, of which a feature can have one: {types} examples"
    if seen.examples < examples:
        yield f"# in {_of(seen.examples, examples)}"
    if seen.unset:
        yield f"# in {_of(seen.unset, examples)} without a kind"
    if kind.least != kind.most:
        yield f"# {kind.least} to {counted(kind.most, 'value')} in an example"
    if usual is Kind.FLOAT and kind.not_finite:
        yield f"# {kind.not_finite} of {counted(kind.values, 'value')} NaN or infinite"
    for each, count in sorted(kind.pictures.items()):
        yield f"# {each} in {count} of {counted(kind.values, 'value')}"
    for what, count in sorted(kind.tensors.items(), key=repr):
        shown = "others" if what is None else f"{what[0]}[{', '.join(map(str, what[1]))}]"
        yield f"# serialised tensors, {shown}, in {count} of {counted(kind.values, 'value')}"


def _of(number: int, examples: int) -> str:
    return f"{number} of {counted(examples, 'example')}"


def _length(kind: KindSeen, required: bool) -> list[str]:
    least, most = kind.least or 0, kind.most
    if least != most or not most:
        return block("value_count", f"min: {min(least, 1)}")
    if not required:
        return block("value_count", f"min: {least}", f"max: {most}")
    return ["shape {}"] if most == 1 else block("shape", *block("dim", f"size: {most}"))


def _domain(name: str, usual: Kind, kind: KindSeen) -> list[str]:
    if usual is Kind.FLOAT:
        finite = kind.values and not kind.not_finite
        return block("float_domain", "disallow_nan: true", "disallow_inf: true") if finite else []
    if usual is Kind.INT64:
        if kind.low is None or not _is_label(name):
            return []
        bounds = (f"min: {kind.low}", f"max: {kind.high}", "is_categorical: true")
        return block("int_domain", *bounds)
    if kind.values and sum(kind.pictures.values()) == kind.values:
        return ["image_domain {}"]
    if kind.words and kind.values >= _REPEATS * len(kind.words):
        values = (f"value: {quoted(word)}" for word in sorted(kind.words))
        classes = ["is_categorical: CATEGORICAL_YES"] if _is_label(name) else []
        return block("string_domain", *values, *classes)
    return []


def _is_label(name: str) -> bool:
    above, _, last = name.rpartition("/")
    last = last.lower()
    if last in ("name", "text"):  # image/class/text beside image/class/label
        return above.rpartition("/")[2].lower() in _LABELS
    return last in _LABELS or last.endswith(("label", "labels"))


def block(name: str, *body: str) -> list[str]:
    """A message of the text form, a line an item of the list."""
    return [f"{name} {{", *(f"  {line}" for line in body), "}"]


def quoted(text: str) -> str:
    r"""`text` as a string of the text form; what does not print comes out in octal."""
    shown = []
    for character in text:
        if character in '"\\':
            shown.append(f"\\{character}")
        elif character.isprintable():
            shown.append(character)
        else:
            shown += [f"\\{byte:03o}" for byte in character.encode()]
    return f'"{"".join(shown)}"'

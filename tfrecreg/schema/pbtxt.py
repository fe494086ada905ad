"""The text of a schema: edits that preserve the rest.

protobuf's printer loses the comments, the order and the layout that a person chose.
"""

from __future__ import annotations

from collections.abc import MutableSequence
from typing import Any

from tfrecreg.schema.text_places import FieldPath, Span, quoted, spans


def append_lines(text: str, lines: list[str]) -> str:
    """Write a field of the schema itself at the end of a text, in its line ends and spacing."""
    new = "".join(f"{line}\n" for line in lines)
    if "\r\n" in text:
        return append_lines(text.replace("\r\n", "\n"), lines).replace("\n", "\r\n")
    if not text:
        return new
    gap = "\n" if "}\n\nfeature" in text else ""
    return text + ("" if text.endswith("\n") else "\n") + gap + new


def rewrite(text: str, before: Any, after: Any) -> str:
    """Change a text so that it parses to another message, and keep its comments and layout.

    Values are replaced, fields removed and inserted where they are written. A field that takes the
    place of another member of its oneof is written there. Repeated scalars may only have new values
    at their end, repeated messages must be as many as before, and maps must be equal.

    Args:
        text: the text form of `before`.
        after: the message that the result parses to.
    """
    rewriter = _Rewriter(text)
    rewriter.message((), before, after)
    return rewriter.result()


class _Rewriter:
    def __init__(self, text: str) -> None:
        self._text = text
        self._spans = spans(text)
        self._children: dict[FieldPath, list[Span]] = {}
        for path, span in self._spans.items():
            self._children.setdefault(path[:-2], []).append(span)
        self._edits: list[tuple[int, int, str]] = []

    def result(self) -> str:
        pieces, last = list[str](), 0
        for start, end, new in sorted(self._edits, key=lambda edit: edit[:2]):
            pieces += (self._text[last:start], new)
            last = end
        pieces.append(self._text[last:])
        text = "".join(pieces)
        if self._edits and "\r\n" in self._text:
            text = text.replace("\r\n", "\n").replace("\n", "\r\n")
        return text

    def message(self, path: FieldPath, before: Any, after: Any) -> None:
        """Edit the fields of one message that differ."""
        old = {field.name: (field, value) for field, value in before.ListFields()}
        new = {field.name: (field, value) for field, value in after.ListFields()}
        gone = [field for name, (field, _) in old.items() if name not in new]
        successors = {
            field.containing_oneof.name: name
            for name, (field, _) in new.items()
            if name not in old and field.containing_oneof is not None
        }
        removed: list[Span] = []
        for field in gone:
            place: FieldPath = (*path, field.name, 0)
            span = self._spans[place]
            oneof = field.containing_oneof
            name = successors.get(oneof.name) if oneof is not None else None
            if name is not None:
                self._edits.append((span.start, span.end, _printed(*new.pop(name))))
            else:
                removed.append(span)
                self._remove(span)
        added: list[str] = []
        for name, (field, value) in new.items():
            if name in old:
                self._field((*path, name), field, old[name][1], value)
            else:
                added.append(_printed(field, value))
        if added:
            kept = [span for span in self._children.get(path, ()) if span not in removed]
            self._insert(self._spans[path], kept, added)

    def _field(self, path: FieldPath, field: Any, before: Any, after: Any) -> None:
        if field.message_type is None:
            old, new = _scalars(field, before), _scalars(field, after)
            if old == new:  # as text, where NaN equals itself
                return
            if isinstance(after, MutableSequence):
                self._extend(path, field.name, len(old), new[len(old) :])
            else:
                place = (*path, 0)
                span = self._spans[place]
                self._edits.append((span.value, span.end, new[0]))
        elif field.message_type.GetOptions().map_entry:
            return
        elif isinstance(after, MutableSequence):
            for number, (old, new) in enumerate(zip(before, after, strict=True)):
                if old != new:
                    self.message((*path, number), old, new)
        elif before != after:
            self.message((*path, 0), before, after)

    def _extend(self, path: FieldPath, name: str, count: int, values: list[str]) -> None:
        """Add values after the last one of a repeated scalar field."""
        place = (*path, count - 1)
        last = self._spans[place]
        at = last.end
        if last.start == last.value:  # in a list
            new = "".join(f", {value}" for value in values)
        elif self._line(last.start).strip():
            new = "".join(f" {name}: {value}" for value in values)
        else:
            gap = "\n" + self._indent(last.start)
            new = "".join(f"{gap}{name}: {value}" for value in values)
            line_end = self._line_end(at)
            if self._text[at:line_end].lstrip(" \t;,").startswith("#"):
                at = line_end  # after the comment of the last value
        self._edits.append((at, at, new))

    def _remove(self, span: Span) -> None:
        """Remove a field, and its line if it has one to itself."""
        start, end = span.start, span.end
        if self._text[end : end + 1] in (",", ";"):
            end += 1
        line_end = self._line_end(end)
        left, right = self._line(start), self._text[end:line_end]
        if left.strip():
            start -= len(left) - len(left.rstrip(" \t"))
        elif right.strip():  # a comment, which stays
            end += len(right) - len(right.lstrip(" \t"))
        else:
            start -= len(left)
            end = min(line_end + 1, len(self._text))
        self._edits.append((start, end, ""))

    def _insert(self, message: Span, fields: list[Span], new: list[str]) -> None:
        """Write new fields after the others of a message."""
        close = message.end - 1
        inside = self._text[message.value + 1 : close]
        joined = " ".join(new)
        if not inside.strip():
            self._edits.append((message.value + 1, close, f" {joined} "))
            return
        if not fields:
            self._edits.append((message.value + 1, message.value + 1, f" {joined}"))
            return
        last = max(fields, key=lambda span: span.end)
        if "\n" not in self._text[last.end : close]:
            at = message.value + 1 + len(inside.rstrip())
            self._edits.append((at, at, f" {joined}"))
            return
        own_line = not self._line(last.start).strip()
        indent = self._indent(last.start) if own_line else self._indent(message.start) + "  "
        at = self._line_end(last.end)
        self._edits.append((at, at, "".join(f"\n{indent}{each}" for each in new)))

    def _line(self, at: int) -> str:
        """The text of the line in front of an offset."""
        return self._text[self._text.rfind("\n", 0, at) + 1 : at]

    def _indent(self, at: int) -> str:
        line = self._line(at)
        return line[: len(line) - len(line.lstrip())]

    def _line_end(self, at: int) -> int:
        end = self._text.find("\n", at)
        if end < 0:
            return len(self._text)
        return end - 1 if self._text[end - 1] == "\r" and end > at else end


def _printed(field: Any, value: Any) -> str:
    """A field with its name: ``min: 1``, ``shape { dim { size: 2 } }``."""
    if field.message_type is None:
        return " ".join(f"{field.name}: {each}" for each in _scalars(field, value))
    messages = value if isinstance(value, MutableSequence) else [value]
    shown = []
    for message in messages:
        inside = " ".join(_printed(*each) for each in message.ListFields())
        shown.append(f"{field.name} {{ {inside} }}" if inside else f"{field.name} {{}}")
    return " ".join(shown)


def _scalars(field: Any, value: Any) -> list[str]:
    """The values of a scalar field as they are written."""
    values = value if isinstance(value, MutableSequence) else [value]
    if field.enum_type is not None:
        return [field.enum_type.values_by_number[each].name for each in values]
    return [_scalar(field, each) for each in values]


def _scalar(field: Any, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quoted(value)
    if field.type == field.TYPE_FLOAT:
        return f"{value:.9g}"  # enough digits for every float32
    return str(value)

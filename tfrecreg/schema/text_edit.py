"""Editing a schema's text in place: what is not edited stays as it is, comments and all.

protobuf can print a message and loses the comments, the order and the layout that a person gave
it. So fields are replaced, put in and taken out where they are written.
"""

from __future__ import annotations

from tfrecreg.schema.locate import Path, Span, spans

__all__ = ["TextEdit"]

_INDENT = "  "


class TextEdit:
    """Edits of one text, which are made together at the end.

    Args:
        text: a message in text form that protobuf parses.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._spans = spans(text)
        self._edits: list[tuple[int, int, str]] = []
        self._inserted: dict[Path, list[str]] = {}
        self._removed: set[Path] = set()
        self._appended: list[str] = []

    def has(self, path: Path) -> bool:
        """Whether the field at `path` is written, and not taken out."""
        return path in self._spans and path not in self._removed

    def result(self) -> str:
        """The text with all edits made."""
        edits = list(self._edits)
        for path, fields in self._inserted.items():
            edits.append(self._insertion(path, fields))
        text, last = "", 0
        for start, end, new in sorted(edits, key=lambda edit: edit[0]):
            if start >= last:  # else it is inside of what was taken out
                text += self._text[last:start] + new
                last = end
        text += self._text[last:]
        if self._appended:
            gap = "\n" if "}\n\nfeature" in text.replace("\r\n", "\n") else ""
            text = text if text.endswith("\n") or not text else text + "\n"
            text += "".join(f"{gap if text else ''}{each}" for each in self._appended)
        if "\r\n" in self._text:
            text = text.replace("\r\n", "\n").replace("\n", "\r\n")
        return text

    def set(self, message: Path, field: str, value: str) -> None:
        """Give a scalar field of the message at `message` a value, whether or not it has one."""
        path = (*message, field, 0)
        if self.has(path):
            span = self._spans[path]
            self._edits.append((span.value, span.end, value))
        else:
            self.insert(message, f"{field}: {value}")

    def replace(self, path: Path, field: str) -> None:
        """Write `field` (name and value) in the place of the one at `path`."""
        span = self._spans[path]
        self._edits.append((span.start, span.end, field))
        self._removed.add(path)

    def insert(self, message: Path, field: str) -> None:
        """Write `field` (name and value) as the last one of the message at `message`."""
        self._inserted.setdefault(message, []).append(field)

    def extend(self, message: Path, field: str, values: list[str]) -> None:
        """Add values behind the last one of a repeated scalar field."""
        numbers = [
            path[-1]
            for path in self._spans
            if len(path) == len(message) + 2 and path[:-1] == (*message, field)
        ]
        if not numbers:
            for value in values:
                self.insert(message, f"{field}: {value}")
            return
        path: Path = (*message, field, max(int(number) for number in numbers))
        last = self._spans[path]
        if last.start == last.value:  # in a list
            new = "".join(f", {value}" for value in values)
        else:
            own_line = not self._text[self._line_start(last.start) : last.start].strip()
            gap = "\n" + self._indent(last.start) if own_line else " "
            new = "".join(f"{gap}{field}: {value}" for value in values)
            if own_line:  # behind the comment of the last one, if it has one
                at = self._line_end(last.end)
                if not _is_comment(self._text[last.end : at]):
                    at = last.end
                self._edits.append((at, at, new))
                return
        self._edits.append((last.end, last.end, new))

    def remove(self, path: Path) -> None:
        """Take out the field at `path`, and its line where it has one to itself."""
        if not self.has(path):
            return
        self._removed.add(path)
        span = self._spans[path]
        start, end = span.start, span.end
        if self._text[end : end + 1] in (",", ";"):
            end += 1
        line, line_end = self._line_start(start), self._line_end(end)
        alone = not self._text[line:start].strip()
        if alone and not self._text[end:line_end].strip():
            self._edits.append((line, min(line_end + 1, len(self._text)), ""))
        elif alone:
            while self._text[end : end + 1] in (" ", "\t"):
                end += 1
            self._edits.append((start, end, ""))  # its comment stays
        else:
            while self._text[start - 1] in " \t":
                start -= 1
            self._edits.append((start, end, ""))

    def append(self, lines: list[str]) -> None:
        """Write a field of the schema itself at the end of the text."""
        self._appended.append("".join(f"{line}\n" for line in lines))

    def _insertion(self, message: Path, fields: list[str]) -> tuple[int, int, str]:
        span = self._spans[message]
        close = span.end - 1
        inside = self._text[span.value + 1 : close]
        last = max(
            (each for path, each in self._spans.items() if path[:-2] == message),
            key=lambda each: each.end,
            default=None,
        )
        joined = " ".join(fields)
        if not inside.strip():
            return span.value + 1, close, f" {joined} "
        if last is None or "\n" not in self._text[last.end : close]:
            at = span.value + 1 + len(inside.rstrip())
            return at, at, f" {joined}"
        at = self._line_end(last.end)
        indent = self._child_indent(span, last)
        return at, at, "".join(f"\n{indent}{field}" for field in fields)

    def _child_indent(self, message: Span, child: Span) -> str:
        if not self._text[self._line_start(child.start) : child.start].strip():
            return self._indent(child.start)
        return self._indent(message.start) + _INDENT

    def _indent(self, at: int) -> str:
        line = self._text[self._line_start(at) : at]
        return line[: len(line) - len(line.lstrip())]

    def _line_start(self, at: int) -> int:
        return self._text.rfind("\n", 0, at) + 1

    def _line_end(self, at: int) -> int:
        end = self._text.find("\n", at)
        end = len(self._text) if end < 0 else end
        return end - 1 if self._text[end - 1 : end] == "\r" and end > at else end


def _is_comment(rest: str) -> bool:
    return rest.lstrip(" \t;,").startswith("#")

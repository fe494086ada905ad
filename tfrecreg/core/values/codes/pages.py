"""The parser of the pages that describe codes.

Each code is a section: a heading with the code and its rule, a list of fields, and the text that
`tfrecreg explain` prints below the summary::

    ## CRC002 data-checksum

    - severity: error
    - summary: The checksum over a record's data does not match
    - hint: restore the shard from DVC or a backup
    - tensorflow: stops

    The masked CRC32C of the data follows the data. …

`severity`, `summary` and `hint` are required. `tensorflow` lists outcomes, the most frequent first.
`counted` is the text after a number of items, for one and for several: ``box is empty | boxes are
empty``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Set
from pathlib import Path
from typing import Any, NamedTuple

from tfrecreg.core.values.findings import Code, Severity, TensorflowOutcome

_FIELD = re.compile(r"- ([a-z]+): (.+)")
_HEADING = re.compile(r"([A-Z]{3}[0-9]{3}) ([a-z0-9-]+)")


class PageError(ValueError):
    """A page is malformed. The message names the file and the line."""

    def __init__(self, file: str, line: int, problem: str) -> None:
        super().__init__(f"{file}:{line}: {problem}")


class _Section(NamedTuple):
    """A heading of the second level with its text."""

    heading: str
    line: int
    """Line number of the heading, from 1."""
    fields: dict[str, Any]
    """The converted values by field name."""
    text: str
    """Ends with one line feed."""


def read_page(name: str) -> str:
    """The text of the page ``<name>.md`` of this package."""
    return Path(__file__).with_name(f"{name}.md").read_text("utf-8")


def read_codes(name: str) -> dict[str, Code]:
    """The codes of the page ``<name>.md`` of this package."""
    return parse_codes(read_page(name), f"{name}.md")


def parse_codes(text: str, file: str) -> dict[str, Code]:
    """The codes of a page by name."""
    known: dict[str, Callable[[str], object]] = {
        "severity": Severity,
        "summary": str,
        "hint": str,
        "tensorflow": _outcomes,
        "counted": _counted,
    }
    codes: dict[str, Code] = {}
    for section in parse_sections(text, file, known, {"tensorflow", "counted"}):
        heading = _HEADING.fullmatch(section.heading)
        if heading is None or heading[1] in codes:
            raise PageError(file, section.line, f"expected a new code: `{section.heading}`")
        code, rule = heading.groups()
        codes[code] = Code(code, rule, page=section.text, **section.fields)
    return codes


def parse_sections(
    text: str, file: str, known: Mapping[str, Callable[[str], object]], optional: Set[str]
) -> Iterator[_Section]:
    """The sections of a page, in order."""
    lines = text.splitlines()
    starts = [index for index, line in enumerate(lines) if line.startswith("## ")]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        fields: dict[str, Any] = {}
        index = start + 2
        while index < end and (match := _FIELD.fullmatch(lines[index])):
            name, value = match.groups()
            if name not in known or name in fields:
                raise PageError(file, index + 1, f"unknown or repeated field `{name}`")
            try:
                fields[name] = known[name](value)
            except ValueError as error:
                raise PageError(file, index + 1, f"wrong `{name}`: {error}") from None
            index += 1
        missing = known.keys() - fields.keys() - optional
        if missing:
            raise PageError(file, start + 1, f"missing field `{min(missing)}`")
        body = "\n".join(lines[index:end]).strip("\n")
        yield _Section(lines[start][3:], start + 1, fields, f"{body}\n")


def _counted(value: str) -> tuple[str, str]:
    one, bar, several = value.partition(" | ")
    if not bar:
        raise ValueError("expected two texts with ` | ` between them")
    return one, several


def _outcomes(value: str) -> tuple[TensorflowOutcome, ...]:
    names = {outcome.name.lower(): outcome for outcome in TensorflowOutcome}
    unknown = set(value.split(", ")) - names.keys()
    if unknown:
        raise ValueError(f"expected {', '.join(names)}, found `{min(unknown)}`")
    return tuple(names[each] for each in value.split(", "))

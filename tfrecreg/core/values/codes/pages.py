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

``SCH101`` to ``SCH188``: the anomalies that TFDV reports, one code per type.

A code is ``SCH100`` plus the number of the type in `AnomalyInfo.Type` of TensorFlow Metadata, which
never changes either. The page ``tfdv.md`` lists the types in groups. A group has one text and one
hint for all its types, and a section of this form::

    ## nan

    - hint: `tfrecreg check --only schema` names the records
    - records: SCH007

    TFDV counts values that are NaN or infinite. …

    - SCH153 FLOAT_TYPE_HAS_NAN: There are NaN where the schema forbids them

`records` is the code under which the validator `schema` reports the records themselves; it is left
out where no single record is the cause. The numbers are listed, not read from TensorFlow Metadata:
the codes are the same whichever release of it is installed. A test compares them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Set
from functools import cache
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


_TYPE = re.compile(r"- (SCH1[0-9]{2}) ([A-Z0-9_]+): (.+)")


class _Anomaly(NamedTuple):
    """A type of anomaly."""

    code: Code
    record_code: str
    """The code under which the validator `schema` reports the records; empty if it reports none."""


def anomaly_code(number: int) -> str:
    """The name of the code for a number of `AnomalyInfo.Type`: ``SCH114`` for 14."""
    return f"SCH{100 + number}"


def record_code(code: str) -> str:
    """The code of the records that cause an anomaly; empty for all other codes."""
    found = _anomalies().get(code) if code.startswith("SCH1") else None
    return found.record_code if found is not None else ""


def tfdv_codes() -> dict[str, Code]:
    """The codes of all anomalies by name."""
    return {name: anomaly.code for name, anomaly in _anomalies().items()}


@cache
def _anomalies() -> dict[str, _Anomaly]:
    return parse_anomalies(read_page("tfdv"), "tfdv.md")


def parse_anomalies(text: str, file: str) -> dict[str, _Anomaly]:
    """The anomalies of a page by code."""
    anomalies: dict[str, _Anomaly] = {}
    for group in parse_sections(text, file, {"hint": str, "records": str}, {"records"}):
        about, _, types = group.text.rpartition("\n\n")
        records = group.fields.get("records", "")
        if records:
            about += (
                f"\n\nThe validator `schema` reports the records themselves as {records}. Where it "
                "runs as well, this\nfinding has their locations."
            )
        for line in types.splitlines():
            match = _TYPE.fullmatch(line)
            if match is None:
                raise PageError(file, group.line, f"expected `- SCH1xx TYPE: summary`: `{line}`")
            name, type_name, summary = match.groups()
            rule = f"tfdv-{type_name.lower().replace('_', '-')}"
            page = f"{about}\n\nTFDV reports it for a whole split, as `{type_name}`.\n"
            code = Code(name, rule, Severity.ERROR, summary, group.fields["hint"], page)
            anomalies[name] = _Anomaly(code, records)
    return dict(sorted(anomalies.items()))

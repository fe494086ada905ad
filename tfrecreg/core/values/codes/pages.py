"""Parses the pages that describe codes.

Each code is a section: a heading with the code and its rule, a list of fields, and the text that
`tfrecreg explain` prints below the summary::

    ## CRC002 data-checksum

    - severity: error
    - summary: The checksum over a record's data does not match
    - hint: restore the shard from DVC or a backup
    - tensorflow: stops

    The masked CRC32C of the data follows the data. …

`severity`, `summary` and `hint` are required. `tensorflow` lists outcomes, the most frequent first.
`counted` has the text that follows a number of items: first for one item, then for several. An
example is ``box is empty | boxes are empty``.

The page ``tfdv.md`` has the anomalies that TFDV reports. In TensorFlow Metadata, `AnomalyInfo.Type`
gives every type of anomaly a number that never changes. The code of an anomaly is ``SCH`` followed
by this number plus 100. A group of types has one text and one hint::

    ## nan

    - hint: `tfrecreg check --only schema` names the records
    - records: SCH007

    TFDV counts values that are NaN or infinite. …

    - SCH153 FLOAT_TYPE_HAS_NAN: There are NaN where the schema forbids them

The value of `records` is a code. Under this code, the validator `schema` reports each record that
causes the anomaly. `records` is omitted if no single record is the cause.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tfrecreg.core.values.findings import Code, Severity, TensorflowOutcome


class _Section(NamedTuple):
    heading: str
    fields: dict[str, str]
    text: str
    """The text below the list. It ends with one line feed."""


def read_page(name: str) -> str:
    return Path(__file__).with_name(f"{name}.md").read_text("utf-8")


def _sections(page: str) -> Iterator[_Section]:
    for section in re.split(r"^## ", read_page(page), flags=re.M)[1:]:
        heading, _, rest = section.partition("\n\n")
        listed, _, body = rest.partition("\n\n")
        fields = dict(line.removeprefix("- ").split(": ", 1) for line in listed.splitlines())
        yield _Section(heading, fields, body.strip("\n") + "\n")


def read_codes(page: str) -> dict[str, Code]:
    codes: dict[str, Code] = {}
    for section in _sections(page):
        code, rule = section.heading.split(" ")
        fields: dict[str, Any] = {
            **section.fields,
            "severity": Severity(section.fields["severity"]),
        }
        if "tensorflow" in fields:
            named = fields["tensorflow"].upper().split(", ")
            fields["tensorflow"] = tuple(TensorflowOutcome[each] for each in named)
        if "counted" in fields:
            fields["counted"] = tuple(fields["counted"].split(" | "))
        codes[code] = Code(code, rule, page=section.text, **fields)
    return codes


_TYPE = re.compile(r"^- (SCH1[0-9]{2}) ([A-Z0-9_]+): (.+)$", re.M)


class _Anomaly(NamedTuple):
    code: Code
    record_code: str
    """The code under which the validator `schema` reports each record that causes the anomaly.
    Empty if no single record is the cause.
    """


def anomaly_code(number: int) -> str:
    """The name of the code for the value `number` of `AnomalyInfo.Type`: ``SCH114`` for 14."""
    return f"SCH{100 + number}"


def record_code(code: str) -> str:
    """The code under which the validator `schema` reports each record that causes the anomaly
    `code`. Empty if `code` is not the code of an anomaly, or if no single record is the cause.
    """
    found = _anomalies().get(code) if code.startswith("SCH1") else None
    return found.record_code if found is not None else ""


def tfdv_codes() -> dict[str, Code]:
    return {name: anomaly.code for name, anomaly in _anomalies().items()}


@cache
def _anomalies() -> dict[str, _Anomaly]:
    anomalies: dict[str, _Anomaly] = {}
    for group in _sections("tfdv"):
        about, _, types = group.text.rpartition("\n\n")
        records = group.fields.get("records", "")
        if records:
            about += (
                f"\n\nThe validator `schema` reports the records themselves as {records}. If it "
                "runs in the same check,\nthis finding has their locations."
            )
        for name, type_name, summary in _TYPE.findall(types):
            rule = f"tfdv-{type_name.lower().replace('_', '-')}"
            page = f"{about}\n\nTFDV reports it for a whole split, as `{type_name}`.\n"
            code = Code(name, rule, Severity.ERROR, summary, group.fields["hint"], page)
            anomalies[name] = _Anomaly(code, records)
    return dict(sorted(anomalies.items()))

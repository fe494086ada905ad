"""``SCH101`` to ``SCH188``: the anomalies that TFDV reports, one code per type.

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
from functools import cache
from typing import NamedTuple

from tfrecreg.core.values.codes.pages import PageError, parse_sections, read_page
from tfrecreg.core.values.findings import Code, Severity

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

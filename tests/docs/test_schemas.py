"""The tables of the page on schemas are those of the rules."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tfrecreg.core.schema.compat import RULES, clashes
from tfrecreg.core.schema.proto import parse_schema

PAGE = (Path(__file__).parents[2] / "docs/schemas.md").read_text("utf-8")


def test_every_rule_has_its_row_and_every_row_its_rule() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| \[?(SCH\d{3})[^|]*\| [^|]+ \|$", PAGE, re.MULTILINE)
    assert rows == [(name, code.code) for name, code in RULES.items()]


def x(body: str) -> str:
    return f'feature {{ name: "x" {body} }}'


ALWAYS = "presence { min_fraction: 1 }"
CHANGES = {
    # what the table calls it: before, after; fixed in length, and not
    "a new optional feature": [("", x("type: INT shape {}")), ("", x("type: INT"))],
    "a new feature in every example": [
        ("", x(f"type: INT {ALWAYS} shape {{}}")),
        ("", x(f"type: INT {ALWAYS}")),
    ],
    "a feature removed": [
        (x(f"type: INT {ALWAYS} shape {{}}"), ""),
        (x("type: INT"), ""),
        (x(f"type: INT {ALWAYS}"), ""),
    ],
    "required becomes optional": [
        (x(f"type: INT {ALWAYS} shape {{}}"), x("type: INT shape {}")),
        (x(f"type: INT {ALWAYS}"), x("type: INT")),
    ],
    "optional becomes required": [
        (x("type: INT shape {}"), x(f"type: INT {ALWAYS} shape {{}}")),
        (x("type: INT"), x(f"type: INT {ALWAYS}")),
    ],
    "another type": [(x("type: INT"), x("type: FLOAT")), (x("type: INT"), x("type: BYTES"))],
    "a scalar becomes a list": [(x(f"type: INT {ALWAYS} shape {{}}"), x(f"type: INT {ALWAYS}"))],
    "a list becomes a scalar": [(x(f"type: INT {ALWAYS}"), x(f"type: INT {ALWAYS} shape {{}}"))],
    "a wider domain": [
        (x("type: INT int_domain { min: 0 max: 9 }"), x("type: INT int_domain { min: 0 }"))
    ],
    "a narrower domain": [
        (x("type: INT int_domain { min: 0 }"), x("type: INT int_domain { min: 0 max: 9 }"))
    ],
    "`lifecycle_stage: DEPRECATED`": [
        (x(f"type: INT {ALWAYS} shape {{}}"), x("type: INT lifecycle_stage: DEPRECATED")),
        (x("type: INT"), x("type: INT lifecycle_stage: DEPRECATED")),
    ],
}


def verdict(reader: str, records: str) -> str:
    codes = {clash.code.code for clash in clashes(parse_schema(reader), parse_schema(records))}
    return "fails" if "SCH020" in codes else "a warning" if codes else "fine"


def said(cell: str, fixed: bool) -> str:
    """What a cell says of features of a fixed length, or of others."""
    if " if " in cell:
        return "fails" if fixed else cell.rpartition("else ")[2]
    return cell.partition(":")[0]


@pytest.mark.parametrize("change", CHANGES)
def test_what_follows_from_the_rules_follows(change: str) -> None:
    (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| {change} |")]
    backward, forward = (cell.strip() for cell in row.strip("|").split("|")[1:])
    for before, after in CHANGES[change]:
        fixed = "shape" in before + after
        assert verdict(after, before) == said(backward, fixed)
        assert verdict(before, after) == said(forward, fixed)

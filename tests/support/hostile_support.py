"""Misleading names, and reports full of them."""

from __future__ import annotations

import itertools
from datetime import date

from tfrecreg.core.check.reports import Basis, Report, SkippedValidator
from tfrecreg.core.values.config import FailOn, Lowered, Waiver
from tfrecreg.core.values.findings import Finding, Location, Measure, Severity, TensorflowOutcome

_PIECES = [
    "\x1b[31m",
    "\x1b]8;;http://example.org\x07",
    "\x9b2J",
    "\u202egpj.exe",
    "\u2066a\u2069",
    "\u200b",
    "\ufeff",
    "\u2028",
    "\x85",
    "\r",
    "\n",
    "\r\n",
    "\0",
    "\x7f",
    "\t",
    "\ud800",
    "\udc80",
    "\udfff\ud800",
    "\ufffe",
    "\uffff",
    "\U0010ffff",
    "::error::",
    "::error file=a,line=1::b",
    "  ::add-mask::x",
    "::set-output name=a::b",
    "##[error]",
    "##[group]a",
    "%0A::error::",
    "%",
    "]]>",
    "<![CDATA[",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</failure></testcase>",
    "<!-- a -->",
    "&lt;",
    "&#x1b;",
    "'",
    '"',
    '" onload="',
    "|",
    "a | b",
    "\\|",
    "\\\\|",
    "\\",
    "`",
    "``",
    "a`|`b",
    "```\n```",
    "`` `",
    "[a](http://example.org)",
    "![a](http://example.org/a.png)",
    "<http://example.org>",
    "http://example.org",
    "www.example.org",
    "@everyone",
    "a @octocat b",
    "octo/repo#1",
    "#1",
    "GH-1",
    "0123456789abcdef0123456789abcdef01234567",
    "**a** _b_ ~~c~~",
    "# a",
    "> a",
    "- a",
    "1. a",
    "---",
    "| a |\n|---|",
    "[/]",
    "[link=http://example.org]a[/link]",
    ":skull:",
    "=cmd()",
    "+1",
    "-1",
    "@sum",
    ",",
    ":",
    "a:b,c=d",
    " ",
    "  ",
    "",
    "..",
    "../../etc/passwd",
    "/etc/passwd",
    "javascript:alert(1)",
    "//example.org/a",
    "a?b#c",
    "{{7*7}}",
    "${{ github.token }}",
    "$(id)",
    "日本語",
    "e\u0301",
    "🙂",
    "\u3164",
    "x" * 10_000,
    "`" * 10_000,
    "|" * 10_000,
    "\u202e" * 10_000,
    "::error::" * 1_000,
]

NAMES = [
    *_PIECES,
    *(f"{a}{b}" for a, b in itertools.product(_PIECES[:48:4], _PIECES[21:70:5])),
][:200]
"""Two hundred of them; the last ones are two pieces in one."""
assert len(NAMES) == 200 == len(set(NAMES))


def hostile_finding(name: str, severity: Severity = Severity.ERROR) -> Finding:
    """A finding with the name in every field that may come from data."""
    where = Location(
        split=name,
        shard=name,
        record=3,
        offset=99,
        length=7,
        feature=name,
        key=name,
        detail=f"expected `{name}`, found {name}",
        tensorflow=TensorflowOutcome.STOPS,
    )
    return Finding(
        code="CRC002",
        rule="data-checksum",
        severity=severity,
        message=f"the class `{name}` is {name}",
        hint=f"mend {name}",
        fingerprint=f"CRC002:digits:{name}:{name}:{name}",
        count=30,
        locations=(where, where),
    )


def hostile_report(name: str, target: str = "digits", folder: str | None = "data/digits") -> Report:
    """A report with the name in all of its parts: found, waived, incomplete, not run."""
    found = hostile_finding(name)
    bare = Finding(
        code="SHD006",
        rule="inconsistent-names",
        severity=Severity.WARNING,
        message=f"the names disagree: {name}",
        hint=name,
        fingerprint=f"SHD006:digits::{name}",
        count=1,
    )
    return Report(
        target=target,
        status="error",
        shards=1,
        records=2,
        bytes=3,
        payload_bytes=2,
        splits={name: 2},
        fail_on=FailOn.ERROR,
        findings=(found, bare),
        waived=(hostile_finding(name, Severity.WARNING),),
        waivers=(
            Waiver(owner=f"a{name}", reason=f"b{name}", expires=date(2031, 1, 31), code="CRC*"),
        ),
        lowered=(Lowered(name, Severity.ERROR, Severity.WARNING, 2),),
        measures=(
            Measure("inflation.features", {name: 10}, name),
            Measure("annotations.histogram.label", {name: 10}, name),
        ),
        validators=("crc", "manifest"),
        skipped=(SkippedValidator("schema", f"no schema at {name}"),),
        errors=(f"`{name}` was not read",),
        changes=(f"digits 2.0.0 (major after 1.0.0): {name}",),
        folder=folder,
        basis=Basis(manifest="0" * 64),
    )

"""A selection as a file: keys, a waiver, or the TOML of a derived dataset."""

from __future__ import annotations

import csv
import datetime
import io
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tfrecreg.builtin.query.sql import sql_text
from tfrecreg.builtin.view.selections import ChosenRecords, ViewChoice, all_of
from tfrecreg.errors import UsageError
from tfrecreg.findings import Finding

if TYPE_CHECKING:
    from tfrecreg.builtin.view.browsed import Browsed

_ROWS = 10_000
_DAYS = 90
"""Days that a waiver holds, if nobody changes its date."""


def keys(browsed: Browsed, selection: ChosenRecords) -> Iterator[bytes]:
    """A CSV file with a row for each record, in parts."""
    yield b"split,key,shard,record\n"
    for at in range(0, len(selection), _ROWS):
        text = io.StringIO()
        rows = csv.writer(text, lineterminator="\n")
        for number in selection.numbers[at : at + _ROWS]:
            seen, record = browsed.shards.place(int(number))
            key = browsed.shards.key(int(number))
            rows.writerow((seen.split, "" if key is None else key, seen.name, record))
        yield text.getvalue().encode("utf-8", "surrogateescape")


def waiver(findings: Sequence[Finding], today: datetime.date) -> str:
    """Waivers of findings for `tfrecreg.toml`, without owner and reason."""
    if not findings:
        raise UsageError(
            "no finding is about these records", hint="select records by a code of a finding"
        )
    expires = today + datetime.timedelta(days=_DAYS)
    lines = ["# Fill in `owner` and `reason`: without them the configuration is refused."]
    for each in findings:
        pattern = each.fingerprint.replace("[", "[[]").replace("*", "[*]").replace("?", "[?]")
        lines += [
            "",
            f"# {each.code}: {' '.join(each.message.split())}",
            "[[waivers]]",
            f"fingerprint = {_text(pattern)}",
            'owner = ""',
            'reason = ""',
            f"expires = {expires.isoformat()}",
        ]
    return "\n".join(lines) + "\n"


def derives(browsed: Browsed, choice: ViewChoice) -> bool:
    """Whether a derived dataset can have exactly these records."""
    target = browsed.target
    return bool(
        target.home is not None
        and target.manifest is not None
        and not target.partial
        and not choice.findings
        and not choice.changed_since
    )


def derived(browsed: Browsed, choice: ViewChoice) -> str:
    """The file `datasets/NAME.toml` of a dataset with the records of a selection."""
    if not derives(browsed, choice):
        raise UsageError(
            "no dataset can be derived from this selection",
            hint="select by splits and conditions, in a build or a release of a registry",
        )
    parts = [*choice.where]
    if choice.splits:
        parts.append(f"split IN ({', '.join(map(sql_text, choice.splits))})")
    lines = [
        "# Save it as datasets/NAME.toml; `tfrecreg build NAME` builds the dataset.",
        'source = "tfrecreg"',
        "",
        "[options]",
        f"inputs = [{_text(browsed.target.reference)}]",
    ]
    if parts:
        lines.append(f"where = {_text(all_of(parts))}")
    return "\n".join(lines) + "\n"


def _text(value: str) -> str:
    """A string of TOML."""
    plain = value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return json.dumps(plain, ensure_ascii=False).replace("\x7f", "\\u007f")

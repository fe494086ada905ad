"""The build that was made of the shards of another tool."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console

from tfrecreg.core.terminal.console import PlainTable, line
from tfrecreg.core.terminal.render.catalog import print_manifest
from tfrecreg.core.terminal.render.findings import print_findings
from tfrecreg.core.values.shards import in_reading_order
from tfrecreg.core.values.text import count, safe, si_bytes

if TYPE_CHECKING:
    from tfrecreg.builtin.adopt.request import AdoptPlan
    from tfrecreg.builtin.adopt.run import AdoptResult

_FILES = 10
"""The number of files shown per split."""


def print_plan(console: Console, plan: AdoptPlan) -> None:
    """Each file of an adoption with its split and its new name."""
    doing = {"copy": "copied", "link": "linked", "in-place": "left where they are"}[plan.how]
    files = f"{count(len(plan.files), 'file')} below {safe(plan.base, limit=1000)}"
    console.print(line((f"{plan.dataset}: ", "bold"), f"{files} would be {doing}"))
    table = PlainTable("split", "file", "size", "in the build", right=("size",), indent=2)
    splits = sorted(plan.splits().items(), key=lambda pair: in_reading_order(pair[0]))
    for split, members in splits:
        for file in members[:_FILES]:
            name = f"/{file.shard.path}".removeprefix(plan.base).lstrip("/")
            size = si_bytes(file.bytes)
            table.add_row(safe(split), safe(name, limit=1000), size, safe(file.path, limit=1000))
        if len(members) > _FILES:
            table.add_row(safe(split), f"… {len(members) - _FILES} more", "", "")
    console.print(table)


def print_adopted(console: Console, messages: Console, result: AdoptResult) -> None:
    """The adopted build, and the next command."""
    from tfrecreg.core.schema.roles.payload_kinds import described

    manifest = result.manifest
    print_findings(messages, result.findings)
    again = " again, the same as before" if result.unchanged else ""
    title = f"adopted {manifest.dataset}{again}, in {result.folder}"
    print_manifest(console, title, result.folder, manifest, brief=True)
    console.print("")
    console.print(line(("payloads: ", "bold"), described(result.kinds)))
    if manifest.labels:
        named = (f"{safe(name)} ({len(names):,})" for name, names in manifest.labels.items())
        console.print(line(("names of classes: ", "bold"), ", ".join(named)))
    for note in result.notes:
        messages.print(line(("note: ", "cyan"), note))
    for text in result.to_keep:
        messages.print(line(text))
    if result.drafted:
        path = safe(result.schema_path, limit=1000)
        text = f"drafted {path} from the records: review it, tighten it, keep it in git"
        messages.print(line(text))

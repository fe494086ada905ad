"""What an adoption would do and did, for people."""

from __future__ import annotations

from rich.console import Console

from tfrecreg.operations.adopt import AdoptPlan, AdoptResult
from tfrecreg.report.catalog import in_reading_order, print_manifest
from tfrecreg.report.check import print_findings
from tfrecreg.report.layout import count, line, new_table
from tfrecreg.text import safe, si_bytes
from tfrecreg.validators.payload_kinds import described

__all__ = ["print_adopted", "print_plan"]

_FILES = 10
"""So many files of a split are shown."""


def print_plan(console: Console, plan: AdoptPlan) -> None:
    """Each file with its split and the name that it gets."""
    doing = {"copy": "copied", "link": "linked", "in-place": "left where they are"}[plan.how]
    files = f"{count(len(plan.files), 'file')} below {safe(plan.base, limit=1000)}"
    console.print(line((f"{plan.dataset}: ", "bold"), f"{files} would be {doing}"))
    table = new_table("split", "file", "size", "in the build", right=("size",), indent=2)
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
    """The build as it is now, and what a person should do next."""
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
    if result.drafted:
        path = safe(result.schema_path, limit=1000)
        text = f"drafted {path} from the records: review it, tighten it, keep it in git"
        messages.print(line(text))

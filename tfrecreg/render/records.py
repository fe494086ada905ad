"""The records that `head` shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from tfrecreg.commands.console import line
from tfrecreg.example.kinds import PayloadKind
from tfrecreg.text import count, safe

if TYPE_CHECKING:
    from tfrecreg.operations.format_payload import ShownPart
    from tfrecreg.operations.head import ShownRecord


_NAMES = {
    PayloadKind.SEQUENCE_EXAMPLE.value: "a tf.train.SequenceExample",
    PayloadKind.EVENT.value: "a TensorBoard event",
}
"""The names of known payloads that are not Examples."""


def print_records(console: Console, records: Iterable[ShownRecord]) -> None:
    """Each record with its location and one line per feature.

    Args:
        records: the records, read one by one.
    """
    for each in records:
        _print_record(console, each)
        for path in each.saved:
            console.print(line(("  saved: ", "green"), safe(path, limit=1 << 16)))


def _print_record(console: Console, each: ShownRecord) -> None:
    key = f", key {each.key}" if each.key is not None else ""
    place = f", record {each.record}, offset {each.offset}, {each.length:,} bytes{key}"
    console.print(line((each.shard, "bold"), place))
    if each.features is None:
        named = _NAMES.get(each.payload or "")
        if each.payload is None:
            console.print(line(("  ", ""), (each.start, "yellow")))
        elif named is not None:
            console.print(line((f"  {named}", "yellow")))
        else:
            console.print(line(("  not a tf.train.Example: ", "yellow"), each.start))
        _print_rows(console, [_part(part) for part in each.parts])
        return
    rows = [
        (feature.name, _kind(feature.kind, feature.count), feature.shown)
        for feature in each.features
    ]
    _print_rows(console, rows)


def _print_rows(console: Console, rows: Sequence[tuple[str, str, str]]) -> None:
    names = max((len(name) for name, _, _ in rows), default=0)
    kinds = max((len(kind) for _, kind, _ in rows), default=0)
    for name, kind, shown in rows:
        head = (f"  {name:<{names}}  ", "cyan")
        console.print(line(head, f"{kind:<{kinds}}  {shown}", hang=names + kinds + 6))


def _part(part: ShownPart) -> tuple[str, str, str]:
    """A row: part and name, kind, content."""
    name = f"{part.part} {part.name}" if part.name else part.part
    if part.part == "context":
        return name, _kind(part.kind, part.count), part.shown
    if part.part == "list":
        steps = count(part.count, "step")
        return name, f"{steps} of {part.kind}" if part.kind else steps, part.shown
    return name, part.kind, part.shown


def _kind(kind: str, count: int) -> str:
    return kind if count == 1 else f"{kind}[{count}]"

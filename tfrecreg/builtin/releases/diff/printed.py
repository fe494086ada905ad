"""Prints the differences between two builds or releases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Console

from tfrecreg.builtin.releases.diff.result import (
    CHANGE_KINDS,
    SPLIT_COUNTS,
    ChangeKind,
    DiffResult,
    RecordDiff,
    SideSummary,
)
from tfrecreg.core.terminal.catalog import print_changes
from tfrecreg.core.terminal.console import PlainTable, line, print_facts
from tfrecreg.core.values.shards import in_reading_order
from tfrecreg.core.values.text import count, safe, si_bytes
from tfrecreg.core.workers.interface import Engine

_LABELS = 20
_SIGNS = {"removed": "-", "added": "+"}
_FEATURES = 20
_STYLES: dict[ChangeKind, str] = {
    "removed": "red",
    "added": "green",
    "changed": "yellow",
    "moved": "magenta",
    "renamed": "cyan",
}


def print_diff(
    console: Console, diff: DiffResult, *, records: bool = False, engine: Engine | None = None
) -> None:
    """Print the sizes, a table of the splits, the first examples of each kind, and the verdict."""
    before, after = diff.before, diff.after
    console.print(line((f"{safe(before.name)} → {safe(after.name)}", "bold")))
    print_facts(console, list(_facts(diff)))
    console.print("")
    console.print(_splits(diff))
    for kind in CHANGE_KINDS:
        if diff.totals[kind]:
            _print_kind(console, diff, kind, records=records, engine=engine)
    if diff.compared or diff.unread:
        _print_features(console, diff)
    if diff.labels:
        _print_labels(console, diff)
    if diff.schema is None:
        console.print(
            line(("schema: ", "bold"), "not compared: a schema is missing or does not parse")
        )
    elif diff.schema:
        console.print(line(("schema: ", "bold"), count(len(diff.schema), "difference")))
        print_changes(console, diff.schema, indent=2)
    console.print("")
    _print_verdict(console, diff)


def _facts(diff: DiffResult) -> Iterator[tuple[str, str]]:
    before, after = diff.before, diff.after
    more, records = after.records - before.records, f"{after.records:,}"
    yield "examples", f"{before.records:,} → {records} ({more:+,})" if more else records
    delta = after.bytes - before.bytes
    sign = "+" if delta >= 0 else ""
    sizes = f"{si_bytes(before.bytes)} → {si_bytes(after.bytes)}"
    yield "size", f"{sizes} ({sign}{si_bytes(delta)})" if delta else sizes
    yield "shards", _shards(diff)
    grown = _grown(before, after)
    if grown:
        yield "features", grown
    if diff.order is not None:
        words = {"same": "the same", "other": "another", "unknown": "not known"}
        yield "order", words[diff.order]


def _shards(diff: DiffResult) -> str:
    shards = diff.shards
    parts = [f"{shards.kept:,} unchanged ({si_bytes(shards.kept_bytes)})"]
    counts = ((shards.recoded, "recompressed"), (shards.new, "new or rewritten"))
    if written := [f"{number:,} {how}" for number, how in counts if number]:
        parts.append(f"{' and '.join(written)} ({si_bytes(shards.new_bytes)})")
    if shards.gone:
        parts.append(f"{shards.gone:,} removed")
    return ", ".join(parts)


def _grown(before: SideSummary, after: SideSummary) -> str:
    """The features whose size differs. The largest difference comes first."""
    old, new = before.features, after.features
    names = {*old, *new}
    deltas = {name: new.get(name, 0) - old.get(name, 0) for name in names}
    ordered = sorted((name for name in names if deltas[name]), key=lambda n: (-abs(deltas[n]), n))
    shown = [
        f"{safe(name)} {'+' if deltas[name] > 0 else ''}{si_bytes(deltas[name])}"
        for name in ordered[:_FEATURES]
    ]
    more = len(ordered) - _FEATURES
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def _splits(diff: DiffResult) -> PlainTable:
    right = ("before", "after", *(each.replace("_", " ") for each in SPLIT_COUNTS))
    table = PlainTable("split", *right, right=right, indent=2)
    for split in sorted(diff.splits, key=lambda each: in_reading_order(each.name)):
        numbers = {name: getattr(split, name) for name in SPLIT_COUNTS}
        cells = [
            f"{_SIGNS.get(name, '')}{number:,}" if number else ""
            for name, number in numbers.items()
        ]
        if not split.known:
            cells = ["?"] * len(cells)
        table.add_row(
            safe(split.name), _number(split.records_before), _number(split.records_after), *cells
        )
    return table


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _print_kind(
    console: Console, diff: DiffResult, kind: ChangeKind, *, records: bool, engine: Engine | None
) -> None:
    total = diff.totals[kind]
    console.print("")
    console.print(line((f"{kind}: ", f"bold {_STYLES[kind]}"), count(total, "example")))
    shown: Iterable[RecordDiff] = diff.examples[kind]
    if records:
        shown = diff.listing(kind, engine=engine)
    for each in shown:
        console.print(line(f"  {_record(each)}"))
    more = 0 if records else total - len(diff.examples[kind])
    if more:
        console.print(line(f"  … and {more:,} more"))


def _record(each: RecordDiff) -> str:
    text = f"{safe(each.split)} {safe(each.key)}"
    if each.from_split is not None or each.from_key is not None:
        origin = [each.from_split or each.split, each.from_key or each.key]
        text = f"{' '.join(map(safe, origin))} → {text}"
    details = [f"{safe(name)} {safe(old)} → {safe(new)}" for name, old, new in each.labels]
    told = {name for name, _, _ in each.labels}
    details += [_feature(name) for name in each.features_changed if name not in told]
    details += [f"+{_feature(name)}" for name in each.features_added]
    details += [f"-{_feature(name)}" for name in each.features_removed]
    return f"{text}: {', '.join(details)}" if details else text


def _feature(name: str) -> str:
    return safe(name) if name else "(payload)"


def _print_features(console: Console, diff: DiffResult) -> None:
    console.print("")
    of = count(diff.compared, "example")
    console.print(line(("features: ", "bold"), f"of {of} compared"))
    ordered = sorted(
        diff.features.items(),
        key=lambda item: (-(item[1].changed + item[1].added + item[1].removed), item[0]),
    )
    for name, counts in ordered[:_FEATURES]:
        told = (
            ("changed in", counts.changed),
            ("added to", counts.added),
            ("removed from", counts.removed),
        )
        parts = [f"{verb} {number:,}" for verb, number in told if number]
        console.print(line(f"  {_feature(name)}: {', '.join(parts)}"))
    if len(ordered) > _FEATURES:
        console.print(line(f"  … and {len(ordered) - _FEATURES:,} more"))
    if diff.unread:
        about = f"{count(diff.unread, 'example')} not compared: {diff.unread_reason}"
        console.print(line(f"  {about}"))


def _print_labels(console: Console, diff: DiffResult) -> None:
    console.print("")
    total = sum(each.count for each in diff.labels) + diff.more_labels
    console.print(line(("labels: ", "bold"), f"{count(total, 'change')}"))
    for each in diff.labels[:_LABELS]:
        change = f"{safe(each.before)} → {safe(each.after)}"
        console.print(line(f"  {safe(each.feature)} {change}: {count(each.count, 'example')}"))
    if len(diff.labels) > _LABELS:
        console.print(line(f"  … and {len(diff.labels) - _LABELS:,} more kinds"))


def _print_verdict(console: Console, diff: DiffResult) -> None:
    if diff.same:
        console.print(line(("no difference", "bold")))
        return
    level = diff.change.level
    number = f"{diff.version} ({level})" if diff.version is not None else level
    console.print(line(("smallest legal number: ", "bold"), number))
    for reason in diff.change.reasons:
        console.print(line(f"  {safe(reason, limit=1000)}"))
    if diff.hint:
        console.print(line(("  hint: ", "cyan"), diff.hint))

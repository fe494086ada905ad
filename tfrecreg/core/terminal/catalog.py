"""Prints lists, manifests, histories and differences between schemas, as text for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import TYPE_CHECKING

from rich.console import Console

from tfrecreg.core.registry.manifest import Change, change_line
from tfrecreg.core.terminal.console import PlainTable, line, print_facts
from tfrecreg.core.values.shards import in_reading_order
from tfrecreg.core.values.text import count, safe, safe_message, si_bytes

if TYPE_CHECKING:
    from tfrecreg.core.registry.listing import Listed, LogEntry
    from tfrecreg.core.registry.manifest import ChangeCounts, Manifest
    from tfrecreg.core.registry.registry import Yank
    from tfrecreg.core.schema.compat import SchemaChange, Value

_FEATURES = 6
"""The number of features that a line shows. The largest come first."""
_LABELS = 12


def feature_sizes(features: Mapping[str, int], around: int = 0, other: int = 0) -> str:
    """The largest features with their bytes and their share of the record bytes, then the rest."""
    total = sum(features.values()) + around + other
    if not total:
        return "none"
    ordered = sorted(features.items(), key=lambda pair: (-pair[1], pair[0]))
    more = len(ordered) - _FEATURES
    rows = [(safe(name), size) for name, size in ordered[:_FEATURES]]
    smaller = sum(size for _, size in ordered[_FEATURES:])
    rest = [("names and framing", around), ("other payloads", other)]
    rows += [row for row in [(count(more, "smaller feature"), smaller), *rest] if row[1]]
    parts = [f"{name} {si_bytes(size)} ({100 * size / total:.0f} %" for name, size in rows]
    return ", ".join([f"{parts[0]} of the record bytes)", *(f"{part})" for part in parts[1:])])


def size_against_raw(size: int, stored: int, decoded: int) -> str:
    """The size relative to the raw data: ``2.35 × the raw files, 0.55 × the unpacked data``. The
    second part is shown only if raw files are packed.
    """
    unpacked = f", {size / decoded:.2f} × the unpacked data" if decoded != stored else ""
    return f"{size / stored:.2f} × the raw files{unpacked}"


def print_list(console: Console, listed: Sequence[Listed]) -> None:
    """One line per dataset."""
    if not listed:
        console.print(line("no datasets yet: tfrecreg build NAME --source SOURCE --raw PATH"))
        return
    table = PlainTable(
        "dataset", "latest", "releases", "records", "size", right=("releases", "records", "size")
    )
    for each in listed:
        table.add_row(
            safe(each.name),
            each.latest or ("(yanked)" if each.state == "released" else f"({each.state})"),
            str(each.releases),
            "" if each.records is None else f"{each.records:,}",
            "" if each.bytes is None else si_bytes(each.bytes),
        )
    console.print(table)
    for each in listed:
        if each.problem:
            console.print(line(("broken: ", "bold red"), each.problem))


def print_log(console: Console, name: str, entries: Sequence[LogEntry]) -> None:
    """One entry per release with its changes, the newest first."""
    if not entries:
        hint = f"tfrecreg release {name} --version 1.0.0"
        console.print(line(f"{name} has no release yet: {hint}"))
    for each in entries:
        size = f"{count(each.records, 'record')}, {si_bytes(each.bytes)}"
        change = Change(level=each.level, reasons=list(each.reasons))
        said = change_line(f"{name} {each.version}", each.records, change, each.parent)
        console.print(line((said, "bold")))
        console.print(line(f"  {name}@{each.version}: {size}; {each.created} by {safe(each.by)}"))
        for yank in each.yanks:
            console.print(line(("  yanked: ", "bold red"), _yank_line(yank)))
        if each.parents:
            console.print(line(f"  from {', '.join(map(safe, each.parents))}"))
        if each.counts is not None:
            console.print(line(f"  {_change_counts(each.counts)}"))
        if each.note:
            console.print(line(f"  “{safe(each.note, limit=1000)}”"))


def _yank_line(yank: Yank) -> str:
    return f"{safe(yank.reason, limit=1000)} ({safe(yank.created)} by {safe(yank.by)})"


def _change_counts(counts: ChangeCounts) -> str:
    """``examples: 50 added; shards: 4 unchanged, 1 new``."""
    parts = [
        f"{number:,} {kind}"
        for kind in ("added", "removed", "changed", "moved", "renamed")
        if (number := getattr(counts, kind))
    ]
    examples = ", ".join(parts) or "the same"
    shards = f"{counts.shards_kept:,} unchanged, {counts.shards_new:,} new"
    return f"examples: {examples}; shards: {shards}"


def print_manifest(
    console: Console,
    title: str,
    folder: str | None,
    manifest: Manifest,
    *,
    brief: bool = False,
    yanks: Sequence[Yank] = (),
    details: Mapping[tuple[str, str], str] = MappingProxyType({}),
) -> None:
    """A build or release: its contents, origin and size. `details` maps a split and a code to
    the first detail in the ledger.
    """
    console.print(line((title, "bold")))
    facts = [("yanked", _yank_line(yank)) for yank in yanks]
    facts += _all(manifest, folder) if not brief else [("size", _size(manifest))]
    facts += _items(manifest, details) if brief else ()
    print_facts(console, facts)
    right = ("records", "shards", "payload")
    splits = PlainTable("split", "records", "shards", "payload", right=right, indent=2)
    for split in sorted(manifest.splits, key=lambda each: in_reading_order(each.name)):
        shards = sum(shard.split == split.name for shard in manifest.shards)
        payload = si_bytes(split.payload_bytes)
        splits.add_row(safe(split.name), f"{split.records:,}", f"{shards:,}", payload)
    console.print("")
    console.print(splits)
    if not brief and manifest.features:
        console.print("")
        from tfrecreg.core.records.framing import OVERHEAD

        payloads = sum(split.payload_bytes for split in manifest.splits)
        records = sum(split.records for split in manifest.splits)
        console.print(_features(manifest.features, payloads + OVERHEAD * records))


def _all(manifest: Manifest, folder: str | None) -> Iterator[tuple[str, str]]:
    release, provenance = manifest.release, manifest.provenance
    if release is not None:
        parent = f" after {release.parent.version}" if release.parent is not None else ""
        reasons = "; ".join(safe(reason) for reason in release.change.reasons)
        yield "change", f"{release.change.level}{parent}: {reasons}"
    if provenance is not None:
        yield "released", f"{provenance.created} by {safe(provenance.by)}"
        if provenance.note:
            yield "note", safe(provenance.note, limit=1000)
    yield "bytes", f"in {safe(folder)}" if folder is not None else "not on this machine"
    yield "size", _size(manifest)
    source = manifest.source
    if source.name:
        given = {key: value for key, value in source.options.items() if value}
        options = "".join(f", {safe(key)}={safe(value)}" for key, value in given.items())
        made = f"{safe(source.name)} ({safe(source.distribution)} {safe(source.version)})"
        yield "source", made + options
    if manifest.parents:
        yield "parents", ", ".join(safe(each.reference) for each in manifest.parents)
    yield "raw", _raw(manifest)
    yield from _items(manifest)
    for feature, names in manifest.labels.items():
        more = " …" if len(names) > _LABELS else ""
        shown = ", ".join(safe(each) for each in names[:_LABELS]) + more
        yield "labels", f"{safe(feature)}, {len(names):,} of them: {shown}"
    yield "content", manifest.content
    yield "manifest", manifest.digest


def _size(manifest: Manifest) -> str:
    size = sum(shard.bytes for shard in manifest.shards)
    records = sum(split.records for split in manifest.splits)
    shards = len(manifest.shards)
    text = f"{si_bytes(size)}, {count(records, 'record')} in {count(shards, 'shard')}"
    if manifest.compression != "none":
        text += f", {manifest.compression}"
    return text


def _raw(manifest: Manifest) -> str:
    size = sum(shard.bytes for shard in manifest.shards)
    raw = manifest.raw
    if not raw.stored or not raw.decoded:
        return "unknown"
    files = f"{count(raw.files, 'file')}, {si_bytes(raw.stored)}"
    if raw.decoded != raw.stored:
        files += f"; {si_bytes(raw.decoded)} unpacked"
    return f"{files}; the shards are {size_against_raw(size, raw.stored, raw.decoded)}"


def _items(
    manifest: Manifest, details: Mapping[tuple[str, str], str] = MappingProxyType({})
) -> Iterator[tuple[str, str]]:
    """The items of the raw data: how many were written and skipped, the reasons and the remarks."""
    ledger = manifest.ledger
    written = sum(each.written for each in ledger.values())
    skipped = sum(sum(each.skipped.values()) for each in ledger.values())
    yield "items", f"{written:,} written, {skipped:,} skipped"
    for split, each in ledger.items():
        for code, number in each.skipped.items():
            yield "skipped", _counted(number, code, split, details)
    for split, each in ledger.items():
        for code, number in each.remarks.items():
            yield "remark", _counted(number, code, split, details)


def _counted(number: int, code: str, split: str, details: Mapping[tuple[str, str], str]) -> str:
    """``80 files, columns or parts are left out (SRC117, validation); the first: …``. Remarks on
    the raw data as a whole have no split.
    """
    from tfrecreg.core.plugins.manager import code_named

    # The plugin of the code may have been uninstalled since.
    found = code_named(code)
    text = safe(found.count_text(number), limit=200) if found is not None else f"{number:,} ×"
    detail = safe_message(details.get((split, code), ""), limit=200)
    example = f"{'; the first' if number > 1 else ''}: {detail}" if detail else ""
    return f"{text} ({code}{split and ', '}{safe(split)}){example}"


def _features(features: Mapping[str, int], record_bytes: int) -> PlainTable:
    """The features by size. The last row has all other bytes of the records."""
    share = "of the record bytes"
    table = PlainTable("feature", "bytes", share, right=("bytes", share), indent=2)
    rows = sorted(features.items(), key=lambda pair: (-pair[1], pair[0]))
    for name, size in [*rows, ("(names, framing, other)", record_bytes - sum(features.values()))]:
        table.add_row(safe(name), si_bytes(size), f"{100 * size / record_bytes:.1f} %")
    return table


_SHOWN = 8
"""The number of list values that are shown; the others are only counted."""


def print_changes(console: Console, changes: Iterable[SchemaChange], *, indent: int = 0) -> None:
    """Print the fields that differ, below the name of their feature."""
    before = " " * indent
    for (part, name), fields in groupby(changes, key=lambda each: (each.part, each.name)):
        shown = f" {safe(name)}" if name else ""
        console.print(line(before, (f"{part.replace('_', ' ')}{shown}", "bold")))
        for change in fields:
            console.print(line(f"{before}  {_change(change)}"))


def _change(change: SchemaChange) -> str:
    if not change.field:
        if change.expected is None:
            return f"expected nothing, found {_value(change.found)}"
        return f"expected {_value(change.expected)}, found nothing"
    old, new = change.expected, change.found
    if isinstance(old, tuple) and isinstance(new, tuple) and set(old) != set(new):
        before, after = set(old), set(new)
        gone = tuple(each for each in old if each not in after)
        more = tuple(each for each in new if each not in before)
        pieces = [f"expected also {_value(gone)}"] if gone else []
        pieces += [f"found also {_value(more)}"] if more else []
        return f"{safe(change.field)}: {'; '.join(pieces)}"
    return f"{safe(change.field)}: expected {_value(old)}, found {_value(new)}"


def _value(value: Value | None) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, str):
        return safe(value)
    shown = ", ".join(safe(each) for each in value[:_SHOWN])
    more = len(value) - _SHOWN
    return f"{shown} and {more} more" if more > 0 else shown

"""From matches to findings."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from tfrecreg.builtin.validators.items.matching import (
    BY_BYTES,
    BY_NAME,
    BY_NAME_ALONE,
    NOT,
    Matching,
)
from tfrecreg.builtin.validators.items.visitor import ItemRows, ItemsVisitor, RowBuilder
from tfrecreg.core.check.scan.indexes import keys_of
from tfrecreg.core.check.scan.interface import RawItems, Shard, Target, Validator
from tfrecreg.core.check.scan.tally import Tally
from tfrecreg.core.example.decode import decode_or_none
from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.codes import SRC017, SRC090, SRC091
from tfrecreg.core.values.findings import MAX_LOCATIONS, Code, Finding, Location, Measure
from tfrecreg.core.values.text import safe

_MATCHED = "items.matched"


class ItemsValidator(Validator):
    """Finds items of raw data without a record, and records without an item.

    Rows are sorted on disk in the folder for temporary files (`TMPDIR`), 32 bytes for each image
    and each name; a few bytes for each record and each item are held.
    """

    name = "items"
    codes: Sequence[Code] = (SRC017, SRC090, SRC091)

    def __init__(self) -> None:
        self._storage: Storage | None = None
        self._clear: Callable[[], object] = lambda: None

    def applies(self, target: Target) -> str | None:
        if target.raw_items is None:
            return "no source of items: name one with --source and --raw"
        return None if target.shards else "there are no shards"

    def begin(self, target: Target, options: Mapping[str, Any]) -> Callable[[Shard], ItemsVisitor]:  # noqa: ARG002 - it has no options
        folder = tempfile.mkdtemp(prefix="tfrecreg-items-")
        # Also clean up if the scan or the program ends by an exception.
        self._clear = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._storage = LocalStorage(folder)
        return partial(ItemsVisitor, self._storage)

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, ItemRows]]
    ) -> Iterator[Finding | Measure]:
        try:
            if target.raw_items is not None and self._storage is not None:
                yield from _compare(target, target.raw_items, self._storage, list(parts))
        finally:
            self._clear()


def _compare(
    target: Target, raw: RawItems, storage: Storage, parts: Sequence[tuple[Shard, ItemRows]]
) -> Iterator[Finding | Measure]:
    items, skipped = _rows_of_items(raw, storage)
    matching = Matching(storage, [part for _, part in parts], items)
    matching.run()
    tally = Tally()
    shards = [shard for shard, _ in parts]
    _add_records(tally, matching, shards, target)
    _add_items(tally, matching, raw)
    yield from tally.findings(target.dataset)
    yield from _measures(matching, raw, skipped, sum(part.unheld for _, part in parts))


def _rows_of_items(raw: RawItems, storage: Storage) -> tuple[ItemRows, Counter[str]]:
    """The rows of the items, and the number of those of which the source makes no record."""
    builder, skipped, count = RowBuilder(storage), Counter[str](), 0
    for item in raw.items():
        if item.payload is None:
            skipped[item.code] += 1
            continue
        builder.add(decode_or_none(item.payload), item.key, count, 0)
        count += 1
    return builder.close(count), skipped


def _add_records(tally: Tally, matching: Matching, shards: Sequence[Shard], target: Target) -> None:
    of = f"`{safe(target.raw_items.source if target.raw_items else '')}`"
    strange = f"no item of {of} has its image, and none that is left has its name"
    differs = f"its image is not the bytes of the item of {of} with its name"
    for code, how, message in ((SRC091, NOT, strange), (SRC017, BY_NAME, differs)):
        found = np.flatnonzero(matching.records == how)
        places = [matching.place(int(each)) for each in found[:MAX_LOCATIONS]]
        wanted: dict[str, set[int]] = {}
        for shard, record in places:
            wanted.setdefault(shards[shard].name, set()).add(record)
        keys = keys_of(shards, wanted)
        for number, (shard, record) in enumerate(places):
            name = shards[shard].name
            where = Location(
                split=shards[shard].split or None,
                shard=name,
                record=record,
                key=keys.get((name, record)),
            )
            count = len(found) - len(places) + 1 if number == 0 else 1
            tally.add(code, message, where, split="", count=count)


def _add_items(tally: Tally, matching: Matching, raw: RawItems) -> None:
    """Name the first items without a record: the source lists them once more."""
    missing = np.flatnonzero(matching.items == NOT)
    wanted = set(missing[:MAX_LOCATIONS].tolist())
    if not wanted:
        return
    message = f"an item of `{safe(raw.source)}` has no record"
    made = (item for item in raw.items() if item.payload is not None)
    extra = len(missing) - len(wanted)
    for number, item in enumerate(made):
        if number in wanted:
            wanted.remove(number)
            where = Location(split=item.split, key=item.key)
            tally.add(SRC090, message, where, split="", count=1 + extra)
            extra = 0
        if not wanted:
            return


def _measures(
    matching: Matching, raw: RawItems, skipped: Counter[str], unheld: int
) -> Iterator[Measure]:
    items = Counter(matching.items.tolist())
    strange = int((matching.records == NOT).sum())
    found = {
        "items": len(matching.items),
        "by_bytes": items[BY_BYTES],
        "by_name": items[BY_NAME] + items[BY_NAME_ALONE],
        "other_bytes": items[BY_NAME],
        "without_record": items[NOT],
        "records": len(matching.records),
        "records_without_item": strange,
        "skipped_by_source": sum(skipped.values()),
        "unheld": unheld,
    }
    text = f"{len(matching.items):,} of `{safe(raw.source)}`: {items[BY_BYTES]:,} found by bytes"
    for count, what in (
        (items[BY_NAME_ALONE], "by name"),
        (items[BY_NAME], "by name with other bytes"),
        (items[NOT], "without a record"),
        (sum(skipped.values()), "more that the source skips"),
        (unheld, "records too large to compare"),
    ):
        if count:
            text += f", {count:,} {what}"
    text += f"; {strange:,} of {len(matching.records):,} records hold none"
    yield Measure(_MATCHED, found, text)
    if skipped:
        said = ", ".join(f"{count:,} of {code}" for code, count in sorted(skipped.items()))
        yield Measure("items.skipped", dict(sorted(skipped.items())), said)

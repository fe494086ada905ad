"""What the targets of a check should hold: by `--same-as` and `--expect`, and by raw data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tfrecreg.core.build.sources.guarded import GuardedSource, Record
from tfrecreg.core.build.sources.interface import Item, Skipped
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.scan.interface import Expected, RawItem, RawItems
from tfrecreg.core.plugins.manager import plugins
from tfrecreg.core.registry.registry import RegistryLike
from tfrecreg.core.registry.shardset.find import resolve_in
from tfrecreg.core.registry.shardset.side import Side, side_of
from tfrecreg.core.storage.raw import raw_storage
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import safe

_DIGEST = re.compile("[0-9a-f]{64}")


def expected_of(
    same_as: str | None, counts: Mapping[str, int], registry: RegistryLike | None
) -> Expected:
    """What the targets of a check should hold."""
    for split, count in counts.items():
        if count < 0:
            raise UsageError(
                f"the number of records of a split should be at least 0, found {count}",
                hint=f"`--expect {safe(split)}=60000`",
            )
    if same_as is None:
        return Expected(counts)
    if _DIGEST.fullmatch(same_as):
        return Expected(counts, same_as)
    resolved = resolve_in(registry, same_as)
    side: Side = side_of(resolved)
    numbers = {entry.path: number for number, entry in enumerate(side.manifest.shards)}
    return Expected(
        counts,
        side.manifest.content,
        side.name,
        side.manifest,
        lambda entry: side.index(numbers[entry.path]),
    )


def raw_items(options: CheckOptions) -> RawItems:
    """The items that the options name."""
    if options.source is None:
        raise UsageError("`--option` is for a source", hint="name it: --source coco --raw DIR")
    if options.raw is None:
        raise UsageError(
            f"`--source {options.source}` needs the raw data", hint="name their folder: --raw DIR"
        )
    parsed, _ = plugins().source_options(options.source, options.source_options)
    raw = raw_storage(options.raw)
    raw.expect_folder()
    source = plugins().open_source(options.source, raw, parsed)
    source.labels()  # reads the annotations: what is wrong with them is said before the scan
    return RawItems(options.source, lambda: _items(source))


def _items(source: GuardedSource) -> Iterator[RawItem]:
    for entry in source.items():
        if isinstance(entry, Skipped):
            yield RawItem(entry.split, entry.key, None, entry.code)
        elif isinstance(entry, Item):
            made = source.record(entry, {})
            if isinstance(made, Record):
                yield RawItem(entry.split, entry.key, made.payload)
            else:
                yield RawItem(entry.split, entry.key, None, made.code)

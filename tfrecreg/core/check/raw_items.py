"""The items of raw data that records should hold: ``check --source S --raw DIR``."""

from __future__ import annotations

from collections.abc import Iterator

from tfrecreg.core.build.sources.guarded import GuardedSource, Record
from tfrecreg.core.build.sources.interface import Item, Skipped
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.scan.interface import RawItem, RawItems
from tfrecreg.core.plugins.manager import plugins
from tfrecreg.core.storage.locations import raw_storage
from tfrecreg.core.values.errors import UsageError


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

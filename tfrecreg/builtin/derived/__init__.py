"""The source `tfrecreg`, whose raw data are versions of other datasets in the registry."""

from __future__ import annotations

from collections.abc import Iterator

from tfrecreg.api import Source, SourceRecord, hookimpl


@hookimpl
def tfrecreg_sources() -> Iterator[SourceRecord]:
    summary = "records of other datasets in the registry: selected, joined, renumbered"
    yield SourceRecord("tfrecreg", summary, _load, raw=".")


def _load() -> type[Source]:
    from tfrecreg.builtin.derived.source import DerivedSource

    return DerivedSource

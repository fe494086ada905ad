"""The open targets, and the datasets of the registry."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Iterator, Sequence
from functools import cached_property
from queue import SimpleQueue
from typing import Any

from tfrecreg.builtin.view.background import Catalog, Findings
from tfrecreg.builtin.view.facets import Facets
from tfrecreg.builtin.view.record import (
    classes_of,
    drawn,
    example_of,
    first_image,
    ledger_rows,
)
from tfrecreg.builtin.view.selections import Selections, python_line
from tfrecreg.builtin.view.shards import ViewedShards
from tfrecreg.core.check.scan.interface import Target
from tfrecreg.core.example.format_payload import ShownImage, images_in
from tfrecreg.core.example.model import Example
from tfrecreg.core.images.decoder import require_pillow
from tfrecreg.core.plugins.decoders import Decoders, target_decoders
from tfrecreg.core.registry.data import resolve
from tfrecreg.core.registry.find import target_of
from tfrecreg.core.registry.listing import list_datasets
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.values.errors import NoSuchNameError, TfrecregError, UsageError
from tfrecreg.core.values.reference import parse_reference
from tfrecreg.core.values.text import safe
from tfrecreg.core.workers.interface import Engine

PAGE = 500
"""Maximum number of records in one answer."""
_HEAD_START = 0.4
"""Maximum number of seconds that background work waits until the first grid is shown."""
_FAREWELL = 10.0
"""Maximum number of seconds that shutdown waits for background work."""


class Browsed:
    """An open target."""

    def __init__(
        self, number: int, target: Target, engine: Engine, registry: Registry | None = None
    ) -> None:
        self.number = number
        self.target = target
        self.word = _word(target, registry)
        """The name of the target in commands and in the library."""
        self.engine = engine
        self.shards = ViewedShards(target)
        self.decoders: Decoders = target_decoders(target)
        self.catalog = Catalog(target, engine)
        self.report = Findings(target, self.shards, engine.jobs)
        self.selections = Selections(self.shards, self.catalog)
        self.facets = Facets(target, self.shards, self.catalog, self.selections)

    def prepare(self, *, check: bool) -> None:
        self.catalog.make()
        if check and not self.catalog.is_closed:
            self.report.make()

    def close(self) -> None:
        self.report.stop()
        self.catalog.close()

    def entry(self) -> dict[str, Any]:
        return {"id": self.number, "name": self.word, "kind": self.target.kind}

    def summary(self) -> dict[str, Any]:
        manifest = self.target.manifest
        shards = self.shards
        columns = self.catalog.columns
        return {
            **self.entry(),
            "digest": manifest.content if manifest is not None else None,
            "records": len(shards),
            "splits": [
                {"name": safe(name), "records": sum(each.records for each in found)}
                for name, found in shards.splits.items()
            ],
            "shards": [{"state": each.state, "records": each.records} for each in shards.shards],
            "columns": (
                [{"name": name, "type": kind} for name, kind in columns]
                if columns is not None
                else None
            ),
            "classes": list(classes_of(self.target.labels)),
            "notes": [
                *self.target.notes,
                *(f"conditions and facets: {each}" for each in self.catalog.notes),
                *_pillow_notes(),
            ],
            "catalog": self.catalog.to_json(len(shards)),
            "commands": {
                "cli": shlex.join(["tfrecreg", "view", self.word]),
                "python": python_line(self.word, shards.splits, self.selections.get("").choice),
            },
        }

    @cached_property
    def ledger(self) -> dict[tuple[str, str], dict[str, Any]]:
        return ledger_rows(self.target)

    def records(self, selection: str, start: int, count: int) -> dict[str, Any]:
        found = self.selections.get(selection)
        stop = start + min(count, PAGE)
        numbers = [int(each) for each in found.numbers[start:stop]]
        payloads = self.shards.payloads(numbers)
        return {
            "of": len(found),
            "records": [*map(self.drawn, numbers, payloads)],
        }

    def drawn(self, number: int, payload: bytes | TfrecregError) -> dict[str, Any]:
        seen, record = self.shards.place(number)
        shown = drawn(payload, self.target.labels, self.decoders, self.shards.key(number))
        thumb = None
        if shown["kind"] == "image":
            place = f"api/t/{self.number}/thumb/{seen.number}/{record}"
            thumb = f"{place}?v={seen.identity}&size=160"
        return {
            "split": safe(seen.split),
            "shard": seen.number,
            "record": record,
            "thumb": thumb,
            "findings": self.report.codes_of(seen.name, record),
            **shown,
        }

    def example(self, number: int) -> Example:
        found = example_of(self.shards.payload(number))
        if found is None:
            raise UsageError("the record is not a tf.train.Example")
        return found

    def image(self, number: int, feature: str | None = None) -> ShownImage:
        example = self.example(number)
        if feature is None:
            found = first_image(example, self.decoders)
        else:
            images = images_in(example, self.decoders)
            named = (each for each in images if feature in (each.feature, safe(each.feature)))
            found = next(named, None)
        if found is None:
            raise NoSuchNameError("the record has no such image")
        return found


class Opened:
    """All open targets. Safe for threads."""

    def __init__(
        self, targets: Sequence[Target], registry: Registry | None, engine: Engine, *, check: bool
    ) -> None:
        self._check = check
        self.registry = registry
        self._engine = engine
        self._lock = threading.Lock()
        self._browsed = [
            Browsed(number, each, engine, registry) for number, each in enumerate(targets)
        ]
        self.shown = threading.Event()
        """Set when the first records are being sent."""
        self._ended = threading.Event()
        self._waiting: SimpleQueue[Browsed | None] = SimpleQueue()
        for each in self._browsed:
            self._waiting.put(each)
        # One after the other: each check uses all processors.
        self._worker = threading.Thread(
            target=self._prepare, name="tfrecreg-view-work", daemon=True
        )
        self._worker.start()

    def close(self) -> None:
        self._ended.set()
        self.shown.set()
        self._waiting.put(None)
        for each in self._browsed:
            each.close()
        # A thread inside Arrow or DuckDB would crash the program when it ends.
        self._worker.join(_FAREWELL)

    def _prepare(self) -> None:
        # The first grid has the processors for itself.
        if self.shown.wait(_HEAD_START):
            self._ended.wait(_HEAD_START / 2)
        for each in iter(self._waiting.get, None):
            if self._ended.is_set():
                return
            each.prepare(check=self._check)

    def __getitem__(self, number: int) -> Browsed:
        if not 0 <= number < len(self._browsed):
            raise NoSuchNameError(f"there is no target {number}")
        return self._browsed[number]

    def to_json(self) -> dict[str, Any]:
        registry = self.registry
        return {
            "targets": [each.entry() for each in self._browsed],
            "datasets": list(_datasets(registry)) if registry is not None else [],
            "registry": safe(registry.storage.root, limit=1000) if registry is not None else None,
        }

    def open(self, name: str) -> Browsed:
        """Open a build or a release of the registry."""
        if self.registry is None:
            raise UsageError("there is no registry here")
        parse_reference(name)
        target = target_of(resolve(self.registry, name))
        with self._lock:
            for each in self._browsed:
                if each.word == target.reference and each.target.home is not None:
                    return each
            made = Browsed(len(self._browsed), target, self._engine, self.registry)
            self._browsed.append(made)
            self._waiting.put(made)
        return made


def _datasets(registry: Registry) -> Iterator[dict[str, Any]]:
    for listed in list_datasets(registry):
        dataset = registry.dataset(listed.name)
        yield {
            "name": listed.name,
            "versions": [str(version) for version in dataset.versions],
            "build": dataset.is_built(),
            "records": listed.records,
            "bytes": listed.bytes,
        }


def _word(target: Target, registry: Registry | None) -> str:
    """The reference of a target if it belongs to this registry, or else its path or URL."""
    home = target.home
    if home is None or target.storage is None or target.partial:
        return target.name
    if registry is not None and registry.storage.root == home.root:
        return target.reference
    return safe(target.storage.root, limit=1000)


def _pillow_notes() -> Iterator[str]:
    """What is not shown because Pillow is missing."""
    try:
        require_pillow("decoding images")
    except TfrecregError as error:
        yield f"large images have no thumbnails: {error.message}; {error.hint}"

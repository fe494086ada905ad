"""The source `tfrecreg`: records of other datasets, unchanged or with other classes and features.

The listing finds the records by the indexes of the parents, and `example` reads one by its place.
A record whose classes and features stay has the bytes that it has in its parent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tfrecreg.builtin.derived.derived_options import (
    DerivedOptions,
    choose_features,
    renamed,
    renamed_labels,
    renames,
)
from tfrecreg.builtin.derived.parents import Ancestor, ancestor_target, find_parents
from tfrecreg.builtin.derived.reading import ParentReader, RecordPlace
from tfrecreg.builtin.derived.schemas import (
    Classes,
    UnfitRecord,
    change_classes,
    merge_classes,
    merge_schemas,
)
from tfrecreg.builtin.derived.selection import RecordSelection
from tfrecreg.core.build.sources.deal import ClassListing, Deal, ListedEntry, deal_strata
from tfrecreg.core.build.sources.interface import Item, RawFile, Remark, Skipped, Source, Written
from tfrecreg.core.example.model import Example
from tfrecreg.core.records.hashing import record_digest
from tfrecreg.core.registry.manifest.model import ParentVersion
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.storage.interface import Readable
from tfrecreg.core.values.errors import RawDataError
from tfrecreg.core.values.text import count, safe


@dataclass(frozen=True, slots=True)
class _Plan:
    """The effect of the options on these parents. Picklable."""

    parents: tuple[Ancestor, ...]
    classes: Classes
    chosen: Mapping[str, str]
    """The new name of each feature that is kept."""

    @property
    def keeps_features(self) -> bool:
        known = {name for each in self.parents for name in each.features}
        return all(self.chosen.get(name) == name for name in known)


class DerivedSource(Source):
    """Versions of other datasets of a registry. See :class:`~tfrecreg.api.Source`."""

    Options: ClassVar[type[Any]] = DerivedOptions
    needs_local: ClassVar[bool] = True

    def __init__(self, raw: Readable, options: DerivedOptions) -> None:
        super().__init__(raw, options)
        self._plan: _Plan | None = None
        self._keeps_features = False
        self._reader = ParentReader(raw)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.raw, self.options), {"_plan": self._loaded()}

    def __setstate__(self, state: dict[str, _Plan]) -> None:
        self._plan = state["_plan"]
        self._keeps_features = self._plan.keeps_features

    def raw_files(self) -> Iterator[RawFile]:
        for parent in self._loaded().parents:
            for shard in parent.shards:
                yield RawFile(shard.path, stored=shard.size, decoded=shard.stream)

    def parents(self) -> Sequence[ParentVersion]:
        """The versions that it reads, for the manifest."""
        return [each.version for each in self._loaded().parents]

    def notes(self) -> Sequence[str]:
        """The parents that are yanked, one line each."""
        return [each.note for each in self._loaded().parents if each.note]

    def labels(self) -> Mapping[str, Sequence[str]]:
        plan = self._loaded()
        return renamed_labels(plan.classes.labels, plan.chosen)

    def schema(self) -> str:
        plan = self._loaded()
        return merge_schemas(plan.parents, plan.classes, plan.chosen)

    def describe(self) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for each in self._loaded().parents:
            records = count(sum(shard.records for shard in each.shards), "record")
            found[f"parent {each.name}"] = f"{records}, content {each.version.content[:16]}…"
        return found

    def items(self) -> Iterator[Item | Skipped | Remark]:
        deal = self.options.deal
        if self.options.stratify is not None:
            yield from deal_strata(deal, self._with_classes(self.options.stratify))
        elif deal.split:
            yield from Deal(deal).listed(self._entries())
        else:
            yield from self._entries()

    def _with_classes(self, expression: str) -> ClassListing:
        """What is listed, and the value of an expression in SQL for an item."""
        from tfrecreg.builtin.query.where import record_texts  # DuckDB, for strata alone

        parents = self._loaded().parents
        texts = [record_texts(ancestor_target(self.raw, each), expression) for each in parents]
        changed = renames("classes", self.options.classes, alone=False)

        def listing() -> Iterator[tuple[ListedEntry, str | None]]:
            for entry in self._entries():
                if not isinstance(entry, Item):
                    yield entry, None
                    continue
                place = RecordPlace.unpack(entry.state)
                text = texts[place.parent][place.shard][place.number]
                yield entry, changed.get(text or "") or text

        return listing

    def _entries(self) -> Iterator[ListedEntry]:
        plan = self._loaded()
        selection = RecordSelection(self.raw, plan.parents, plan.classes, self.options)
        keys = _Keys(plan.parents) if len(plan.parents) > 1 and not self.options.prefix else None
        found = False
        for taken in selection.taken():
            parent = plan.parents[taken.parent]
            split = parent.shards[taken.shard].split
            offsets = taken.index.offsets()
            for number in taken.numbers.tolist():
                key = taken.index.key(number)
                if keys is not None:
                    keys.add(split, key, taken.parent)
                length = int(taken.index.lengths[number])
                digest = taken.index.digests[number].tobytes()
                place = RecordPlace(
                    taken.parent, taken.shard, number, int(offsets[number]), length, digest
                )
                found = True
                yield Item(split, self._prefixed(parent, key), length, place.pack())
        for split, times in sorted(selection.left_out.items()):
            what = f"{count(times, 'record')} of classes that `classes` leaves out"
            yield Remark(split, "", "SRC103", what, times)
        if not found:
            raise RawDataError(
                "no record of the parents is selected: "
                + ", ".join(f"`{each.name}`" for each in plan.parents),
                hint="widen `where`, `sample` or `classes`; `tfrecreg query` shows what is there",
            )

    def example(self, item: Item) -> Example | Written | Skipped:
        plan = self._loaded()
        place = RecordPlace.unpack(item.state)
        example, problem = self._reader.read(plan.parents[place.parent], place)
        if problem:
            return Skipped(item.split, item.key, "SRC102", problem)
        try:
            changed, left_out = change_classes(example, plan.classes.by_parent[place.parent])
        except UnfitRecord as error:
            return Skipped(item.split, item.key, error.code, error.detail)
        if not self._keeps_features:
            changed = renamed(changed, plan.chosen)
        if not left_out:
            return changed
        what = f"{count(left_out, 'object')} of classes that `classes` leaves out"
        return Written(changed, [Remark(item.split, item.key, "SRC104", what, left_out)])

    def _loaded(self) -> _Plan:
        if self._plan is None:
            parents = tuple(map(_with_declared, find_parents(self.raw, self.options.inputs)))
            known = {name for each in parents for name in each.features}
            self._plan = _Plan(
                parents=parents,
                classes=merge_classes(parents, self.options.classes),
                chosen=choose_features(self.options.features, known),
            )
            self._keeps_features = self._plan.keeps_features
        return self._plan

    def _prefixed(self, parent: Ancestor, key: str) -> str:
        return f"{parent.dataset}/{key}" if self.options.prefix else key


class _Keys:
    """Refuses two records with one key: 16 bytes are kept of each."""

    def __init__(self, parents: Sequence[Ancestor]) -> None:
        self._parents = parents
        self._owners: dict[bytes, int] = {}

    def add(self, split: str, key: str, parent: int) -> None:
        name = f"{split}\0{key}".encode("utf-8", "surrogateescape")
        owner = self._owners.setdefault(record_digest(name), parent)
        if owner != parent:
            first, second = self._parents[owner], self._parents[parent]
            raise RawDataError(
                f"the parents `{first.name}` and `{second.name}` both have the key "
                f"`{safe(key, limit=200)}` in the split `{split}`",
                hint="--option prefix=yes puts the name of its dataset before each key",
            )


def _with_declared(parent: Ancestor) -> Ancestor:
    """A parent whose features include those that its schema declares, and no record has."""
    declared = (each.name for each in parse_schema(parent.schema, parent.name).features)
    return replace(parent, features=tuple(dict.fromkeys((*parent.features, *declared))))

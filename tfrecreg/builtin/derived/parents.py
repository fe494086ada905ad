"""The options of the source `tfrecreg`, and the versions from which a dataset is derived."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from fractions import Fraction
from pathlib import Path

from tfrecreg.core.build.sources.deal import DEFAULT_SPLIT, DealOptions
from tfrecreg.core.check.scan.interface import Target
from tfrecreg.core.records.framing import OVERHEAD
from tfrecreg.core.records.index import Index, load_index
from tfrecreg.core.records.reading.access import Records
from tfrecreg.core.records.reading.offsets import RecordOffsets
from tfrecreg.core.registry.data import Build, Release, expect_schema, resolve
from tfrecreg.core.registry.find import target_of
from tfrecreg.core.registry.manifest import Manifest, ParentVersion, ShardEntry
from tfrecreg.core.registry.registry import Registry, open_registry
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.storage.interface import Readable
from tfrecreg.core.values.errors import ManifestError, RawDataError, UsageError
from tfrecreg.core.values.text import did_you_mean, safe


@dataclass(frozen=True, slots=True)
class Ancestor:
    """A version that provides records. Picklable."""

    manifest: Manifest
    version: ParentVersion
    """The version in the form that manifests of derived datasets use."""
    raw: Readable
    """The storage of the registry."""
    folder: str
    """Path of the version's folder in the registry."""
    indexes: Mapping[str, str]
    """The digest of each index, by path."""
    schema: str
    features: frozenset[str]
    """Names of the features in its records or its schema."""
    note: str
    """A note if the version was yanked; otherwise empty."""

    @property
    def name(self) -> str:
        """``street@2.1.0``."""
        return self.version.reference

    @property
    def labels(self) -> Mapping[str, Sequence[str]]:
        return self.manifest.labels

    @property
    def shards(self) -> Sequence[ShardEntry]:
        return self.manifest.shards

    def path(self, shard: ShardEntry) -> str:
        """The path of a shard in the registry."""
        return f"{self.folder}/{shard.path}"

    def stream(self, shard: ShardEntry) -> int:
        """Size of the decompressed stream of a shard in bytes."""
        return shard.payload_bytes + OVERHEAD * shard.records

    def expect_here(self) -> None:
        """Refuse a shard that is missing or has another size."""
        for shard in self.shards:
            entry = self.raw.stat(self.path(shard), follow="all")
            if entry is None or entry.kind != "file":
                raise self.damaged(shard, "it is missing")
            if entry.size != shard.bytes:
                what = f"it should have {shard.bytes:,} bytes, found {entry.size:,}"
                raise self.damaged(shard, what)

    def index(self, shard: ShardEntry) -> Index:
        """The index of a shard. An index that does not match the manifest is refused."""
        path, digest = f"{self.folder}/{shard.index}", self.indexes[shard.index]
        try:
            index = load_index(self.raw, path, blake3_hex=digest)
            if (len(index), index.stream_bytes) != (shard.records, self.stream(shard)):
                raise ManifestError(f"`{path}` belongs to another shard")
        except ManifestError as error:
            raise RawDataError(
                f"an index of the parent `{self.name}` is damaged: {error.message}",
                hint=f"tfrecreg repair {self.name}",
            ) from None
        return index

    def records(self, shard: ShardEntry, offsets: RecordOffsets) -> Records:
        """The records of a shard as it is now, from the offsets in its index."""
        path = self.path(shard)
        entry = self.raw.stat(path, follow="all")
        offsets = replace(offsets, mtime_ns=entry.mtime_ns if entry is not None else 0)
        return Records.located(self.raw, path, offsets, name=path)

    def target(self) -> Target:
        """The version as a target on which SQL conditions can be evaluated."""
        return target_of(resolve(_registry(self.raw), self.name))

    def damaged(self, shard: ShardEntry, why: str, record: int | None = None) -> RawDataError:
        """The error for a damaged shard, or for a record that does not match the index."""
        why = why if record is None else f"record {record}: {why}"
        return RawDataError(
            f"`{self.path(shard)}` of the parent `{self.name}` is damaged: {why}",
            hint=f"tfrecreg repair {self.name}",
        )


def find_parents(raw: Readable, inputs: Sequence[str]) -> tuple[Ancestor, ...]:
    """The versions that these references currently name."""
    registry = _registry(raw)
    found: dict[str, Ancestor] = {}
    for text in inputs:
        parent = _parent(registry, raw, resolve(registry, text))
        other = found.setdefault(parent.manifest.dataset, parent)
        if other is not parent:
            raise UsageError(
                f"`inputs` names `{parent.manifest.dataset}` twice, as `{other.name}` and "
                f"`{parent.name}`: records of two versions would have the same keys"
            )
    return tuple(found.values())


def _registry(raw: Readable) -> Registry:
    registry = open_registry(raw.root)
    if os.path.realpath(raw.root) != os.path.realpath(registry.storage.root):
        raise RawDataError(f"`{raw.root}` is not the folder of a registry")
    return registry


def _parent(registry: Registry, raw: Readable, resolved: Build | Release) -> Ancestor:
    manifest, schema = resolved.manifest, expect_schema(resolved)
    declared = (each.name for each in parse_schema(schema, resolved.name).features)
    note = ""
    if resolved.yanks:
        yank = resolved.yanks[-1]
        by, why = safe(yank.by), safe(yank.reason)
        note = f"the parent `{resolved.name}` was yanked on {safe(yank.created)} by {by}: {why}"
    parent = Ancestor(
        manifest=manifest,
        version=ParentVersion(
            reference=resolved.name, digest=manifest.digest, content=manifest.content
        ),
        raw=raw,
        folder=Path(os.path.relpath(resolved.storage().root, registry.storage.root)).as_posix(),
        indexes={each.path: each.blake3 for each in manifest.files},
        schema=schema,
        features=frozenset((*manifest.features, *declared)),
        note=note,
    )
    if not all(each.index in parent.indexes for each in parent.shards):
        raise UsageError(
            f"the parent `{parent.name}` has shards without an index, so its records have no keys",
            hint=f"write an index with `tfrecreg adopt {manifest.dataset} --in-place`",
        )
    parent.expect_here()
    return parent


@dataclass(frozen=True)
class DerivedOptions:
    """Options of the source."""

    inputs: tuple[str, ...]
    """The versions to take records from: `street@2.*,night@1.0.0`. A name alone means the build."""
    where: str | None = None
    """An SQL condition that records must meet, written as after WHERE in `query`. Needs the extra
    `query`.
    """
    classes: tuple[str, ...] = ()
    """Changes of classes: `kitten=cat` renames a class, or merges it with an existing `cat`;
    `truck=` leaves a class out."""
    features: tuple[str, ...] = ()
    """Changes of features: `image/area=` leaves a feature out, `image/id=id` renames it. An entry
    without `=`, such as `image/encoded`, keeps that feature. All features without an entry are then
    left out. `*` stands for any characters."""
    sample: str = "100%"
    """The share of records to take: `10%`, `0.1`, `1/10`. Records are chosen by the hashes of their
    keys.
    """
    limit: int | None = None
    """Maximum number of records per class and split. The hashes of their keys decide which are
    taken. A record of several classes is taken unless all its classes have reached the maximum.
    """
    prefix: bool = False
    """Whether keys begin with the name of the parent dataset: `street/000123.jpg`."""
    split: tuple[str, ...] = ()
    """Divide the records of one split into several with these shares: `train=0.9,validation=0.1`.
    Default: the splits of the parents.
    """
    split_of: str = DEFAULT_SPLIT
    """The option `split` divides this split of the parents. Their other splits are kept."""
    group: str | None = None
    """With `split`: a regular expression, such as `(patient[0-9]+)_`, that is searched for in each
    key. Records stay in the same split if the first group of the expression matches the same text.
    """
    stratify: str | None = None
    """With `split`: the class, as a column or an expression of `query`, such as `label`. Each split
    gets its share of every class, to within one record. It needs the extra `query`.
    """

    def __post_init__(self) -> None:
        if not self.inputs:
            raise UsageError(
                "the option `inputs` is empty: expected datasets, such as street@2.*,night@1.0.0"
            )
        if self.limit is not None and self.limit < 1:
            raise UsageError(f"the option `limit` is {self.limit}, expected at least 1")
        _ = self.deal  # DealOptions checks its values
        share_of(self.sample)
        renames("classes", self.classes, alone=False)
        renames("features", self.features, alone=True)

    @property
    def deal(self) -> DealOptions:
        """The options that every source has for splits."""
        return DealOptions(self.split, self.split_of, self.group, self.stratify is not None)


def share_of(sample: str) -> Fraction:
    """The share in the option `sample`, as a fraction."""
    number = sample.strip()
    try:
        share = Fraction(number.removesuffix("%").strip()) if len(number) <= 40 else Fraction(0)
    except (ValueError, ZeroDivisionError):
        share = Fraction(0)
    if number.endswith("%"):
        share /= 100
    if not 0 < share <= 1:
        raise UsageError(
            f"the option `sample` is `{sample}`, expected a share above 0 and up to 100%"
        )
    return share


def renames(option: str, entries: tuple[str, ...], *, alone: bool) -> dict[str, str | None]:
    """The new name for each old name in `classes` or `features`. The empty name leaves the old one
    out. An entry without `=` has None: it keeps its name.
    """
    found: dict[str, str | None] = {}
    for entry in entries:
        old, equals, new = entry.partition("=")
        if not old or (not equals and not alone):
            raise UsageError(
                f"the option `{option}` has `{entry}`, expected `OLD=NEW`, or `OLD=` to omit OLD"
            )
        if old in found:
            raise UsageError(f"the option `{option}` names `{old}` twice")
        found[old] = new if equals else None
    return found


def choose_features(entries: tuple[str, ...], known: Iterable[str]) -> dict[str, str]:
    """The new name of each kept feature, by its name in the parents."""
    names = sorted(set(known))
    asked = renames("features", entries, alone=True)
    chosen = dict.fromkeys(names, "") if None in asked.values() else {each: each for each in names}
    for entry, new in asked.items():
        matching = [name for name in names if name == entry or fnmatchcase(name, entry)]
        if not matching:
            raise UsageError(
                f"`features` names `{entry}`, which no parent has{did_you_mean(entry, names)}"
            )
        for name in matching:
            # An exact name takes precedence over a pattern.
            if name == entry or name not in asked:
                chosen[name] = name if new is None else new
    taken: dict[str, str] = {}
    for name, new in chosen.items():
        if new and taken.setdefault(new, name) != name:
            raise UsageError(f"`features` gives the name `{new}` to `{taken[new]}` and `{name}`")
    return {name: new for name, new in chosen.items() if new}


def renamed_labels(
    labels: Mapping[str, Sequence[str]], chosen: Mapping[str, str]
) -> dict[str, Sequence[str]]:
    """The label maps, with each map under the new name of its feature.

    A map without a feature of the same name belongs to other features. For example, the map
    `a/keypoint` belongs to all features that begin with `a/keypoint/`. The map `a/id` belongs to
    `a/label` and to all features that begin with `a/id/`. Such a map is kept if one of these
    features keeps its name.
    """
    found: dict[str, Sequence[str]] = {}
    for name, names in labels.items():
        if name in chosen:
            found[chosen[name]] = names
            continue
        beside = f"{name.removesuffix('/id')}/label" if name.endswith("/id") else ""
        kept = (old for old, new in chosen.items() if old == new)
        if any(each == beside or each.startswith(f"{name}/") for each in kept):
            found[name] = names
    return found

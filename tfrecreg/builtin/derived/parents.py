"""The options of the source `tfrecreg`, and the versions that it is derived from."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import TypeVar

from tfrecreg.core.build.sources.deal import DEFAULT_SPLIT, DealOptions, check_stratify
from tfrecreg.core.check.scan.interface import Target
from tfrecreg.core.records.framing import OVERHEAD
from tfrecreg.core.registry.lookup import Build, Release, expect_schema, resolve
from tfrecreg.core.registry.manifest import ParentVersion
from tfrecreg.core.registry.registry import Registry, open_registry
from tfrecreg.core.registry.shardset.target import target_of
from tfrecreg.core.storage.interface import Readable
from tfrecreg.core.values.errors import RawDataError, UsageError
from tfrecreg.core.values.text import did_you_mean, safe


@dataclass(frozen=True, slots=True)
class ParentShard:
    """A shard of a parent. Picklable."""

    split: str
    path: str
    """Below the root of the registry, as that of the index."""
    index: str
    index_blake3: str
    """Hex digest of the index by the manifest."""
    size: int
    """Bytes of the file."""
    stream: int
    """Bytes of its decompressed stream."""
    records: int
    gzip: bool


@dataclass(frozen=True, slots=True)
class Ancestor:
    """A version. Picklable."""

    dataset: str
    version: ParentVersion
    """As the manifest of a child names it."""
    shards: tuple[ParentShard, ...]
    labels: Mapping[str, Sequence[str]]
    """Class names in order of their numbers, by feature."""
    features: tuple[str, ...]
    """Names of the features that its records have."""
    schema: str
    note: str
    """The note that it is yanked; empty if it is not."""

    @property
    def name(self) -> str:
        """``street@2.1.0``."""
        return self.version.reference


def find_parents(raw: Readable, inputs: Sequence[str]) -> tuple[Ancestor, ...]:
    """The versions that these references name now."""
    registry = _registry(raw)
    found: dict[str, Ancestor] = {}
    for text in inputs:
        parent = _parent(registry, raw, resolve(registry, text))
        other = found.setdefault(parent.dataset, parent)
        if other is not parent:
            raise UsageError(
                f"`inputs` names `{parent.dataset}` twice, as `{other.name}` and `{parent.name}`",
                hint="name one version of each dataset: records of two would have the same keys",
            )
    return tuple(found.values())


def ancestor_target(raw: Readable, parent: Ancestor) -> Target:
    """A parent, to be asked for the records that meet a condition."""
    return target_of(resolve(_registry(raw), parent.name))


def expect_shards_here(raw: Readable, parent: Ancestor) -> None:
    """Refuse a parent with a missing shard or one of another size."""
    for shard in parent.shards:
        entry = raw.stat(shard.path, follow="all")
        if entry is None or entry.kind != "file":
            raise _damaged(parent, shard, "it is missing")
        if entry.size != shard.size:
            what = f"it should have {shard.size:,} bytes, found {entry.size:,}"
            raise _damaged(parent, shard, what)


def damaged_record(parent: Ancestor, shard: ParentShard, number: int, why: str) -> RawDataError:
    """The error about a record that is not what the index of its shard says."""
    return _damaged(parent, shard, f"record {number}: {why}")


def _damaged(parent: Ancestor, shard: ParentShard, why: str) -> RawDataError:
    return RawDataError(
        f"`{safe(shard.path, limit=1000)}` of the parent `{parent.name}` is damaged: {why}",
        hint=f"tfrecreg repair {parent.name}",
    )


def _registry(raw: Readable) -> Registry:
    root = raw.root
    try:
        registry = open_registry(root)
    except UsageError:
        registry = None
    if registry is None or os.path.realpath(root) != os.path.realpath(registry.storage.root):
        raise RawDataError(
            f"`{safe(root, limit=1000)}` is not the folder of a registry, and the raw data of the "
            "source `tfrecreg` are versions in one",
            hint="leave out --raw for this registry, or name the folder with its `tfrecreg.toml`",
        )
    return registry


def _parent(registry: Registry, raw: Readable, resolved: Build | Release) -> Ancestor:
    manifest = resolved.manifest
    storage = resolved.storage()
    folder = os.path.relpath(storage.root, registry.storage.root).replace(os.sep, "/")
    indexes = {each.path: each.blake3 for each in manifest.files}
    parent = Ancestor(
        dataset=manifest.dataset,
        version=ParentVersion(
            reference=resolved.name, digest=manifest.digest, content=manifest.content
        ),
        shards=tuple(
            ParentShard(
                split=each.split,
                path=f"{folder}/{each.path}",
                index=f"{folder}/{each.index}",
                index_blake3=indexes.get(each.index, ""),
                size=each.bytes,
                stream=each.payload_bytes + OVERHEAD * each.records,
                records=each.records,
                gzip=manifest.compression == "gzip",
            )
            for each in manifest.shards
        ),
        labels=manifest.labels,
        features=tuple(manifest.features),
        schema=expect_schema(resolved),
        note="; ".join(_yanks(resolved)),
    )
    if not all(each.index_blake3 for each in parent.shards):
        raise UsageError(
            f"the parent `{parent.name}` has shards without an index, so its records have no keys",
            hint=f"tfrecreg adopt {parent.dataset} --in-place writes one",
        )
    expect_shards_here(raw, parent)
    return parent


def _yanks(resolved: Build | Release) -> Iterator[str]:
    for each in resolved.yanks[-1:]:
        yield (
            f"the parent `{resolved.name}` was yanked on {safe(each.created)} by {safe(each.by)}: "
            f"{safe(each.reason)}"
        )


@dataclass(frozen=True)
class DerivedOptions:
    """Options of the source."""

    inputs: tuple[str, ...]
    """The versions to take records from: `street@2.*,night@1.0.0`. A name alone is the build."""
    where: str | None = None
    """A condition in SQL that a record has to meet, as `query` takes it after WHERE. It needs the
    extra `query`."""
    classes: tuple[str, ...] = ()
    """Changes of classes: `kitten=cat` renames a class, or merges it with an existing `cat`;
    `truck=` leaves a class out."""
    features: tuple[str, ...] = ()
    """Changes of features: `image/area=` leaves one out, `image/id=id` renames one. A
    name alone, such as `image/encoded`, keeps it and leaves out all others that are not named. `*`
    stands for any characters."""
    sample: str = "100%"
    """The share of the records to take, by the hashes of their keys: `10%`, `0.1`, `1/10`."""
    limit: int | None = None
    """Take at most this number of records of each class in each split, by the hashes of their keys.
    A record of several classes is taken while one of them has fewer."""
    prefix: bool = False
    """Whether keys begin with the name of their dataset: `street/000123.jpg`."""
    split: tuple[str, ...] = ()
    """Deal the records of one split to several, by shares: `train=0.9,validation=0.1`. Default: the
    splits of the parents."""
    split_of: str = DEFAULT_SPLIT
    """With `split`: the split of the parents that is dealt. Their other splits stay as they are."""
    group: str | None = None
    """With `split`: a regular expression, searched in keys. Records with the same text in its first
    group stay in one split: `(patient[0-9]+)_`."""
    stratify: str | None = None
    """With `split`: each split has its share of the records of every class, to within one record. A
    column or an expression as `query` takes it: `label`. It needs the extra `query`."""

    def __post_init__(self) -> None:
        if not self.inputs:
            raise UsageError(
                "the option `inputs` is empty: it names the datasets to take records from",
                hint="--option inputs=street@2.*,night@1.0.0",
            )
        if self.limit is not None and self.limit < 1:
            raise UsageError(
                f"the option `limit` is {self.limit}, expected at least 1",
                hint="leave it out for all records",
            )
        check_stratify(self.stratify is not None, self.deal.split, self.group)
        share_of(self.sample)
        renames("classes", self.classes, alone=False)
        renames("features", self.features, alone=True)

    @property
    def deal(self) -> DealOptions:
        """The options that every source has."""
        return DealOptions(self.split, self.split_of, self.group)


def share_of(sample: str) -> Fraction:
    """The share that the option `sample` says."""
    number = sample.strip()
    try:
        share = Fraction(number.removesuffix("%").strip()) if len(number) <= 40 else Fraction(0)
    except (ValueError, ZeroDivisionError):
        share = Fraction(0)
    if number.endswith("%"):
        share /= 100
    if not 0 < share <= 1:
        raise UsageError(
            f"the option `sample` is `{safe(sample, limit=60)}`, expected a share above 0 and up "
            "to 100%",
            hint="--option sample=10%",
        )
    return share


def renames(option: str, entries: tuple[str, ...], *, alone: bool) -> dict[str, str | None]:
    """The entries of `classes` or `features`, by the old name."""
    found: dict[str, str | None] = {}
    for entry in entries:
        old, equals, new = entry.partition("=")
        if not old or (not equals and not alone):
            raise UsageError(
                f"the option `{option}` has `{safe(entry, limit=100)}`, expected OLD=NEW, or OLD= "
                "for what is left out",
                hint=f"--option {option}=old=new",
            )
        if old in found:
            raise UsageError(
                f"the option `{option}` names `{safe(old, limit=100)}` twice",
                hint="name it once",
            )
        found[old] = new if equals else None
    return found


T = TypeVar("T")


def choose_features(entries: tuple[str, ...], known: Iterable[str]) -> dict[str, str]:
    """The new name of each feature that is kept, by its name in the parents."""
    names = sorted(set(known))
    asked = renames("features", entries, alone=True)
    chosen = dict.fromkeys(names, "") if None in asked.values() else {each: each for each in names}
    for entry, new in asked.items():
        matching = [name for name in names if name == entry or fnmatchcase(name, entry)]
        if not matching:
            raise UsageError(
                f"`features` names `{safe(entry, limit=100)}`, which no parent has"
                f"{did_you_mean(entry, names)}",
                hint="`tfrecreg head` of a parent shows its features",
            )
        if new and len(matching) > 1:
            raise UsageError(
                f"`features` gives {len(matching)} features the name `{safe(new, limit=100)}`",
                hint="rename them one by one",
            )
        for name in matching:
            # What is named in full counts more than what a pattern matches.
            if name == entry or name not in asked:
                chosen[name] = name if new is None else new
    taken: dict[str, str] = {}
    for name, new in chosen.items():
        if new and taken.setdefault(new, name) != name:
            raise UsageError(
                f"`features` gives the name `{safe(new, limit=100)}` to "
                f"`{safe(taken[new], limit=100)}` and `{safe(name, limit=100)}`",
                hint="rename or leave out one of them",
            )
    return {name: new for name, new in chosen.items() if new}


def renamed(values: Mapping[str, T], chosen: Mapping[str, str]) -> dict[str, T]:
    """What is known by feature, of those that are kept, by their new names."""
    return {chosen[name]: value for name, value in values.items() if name in chosen}


def renamed_labels(
    labels: Mapping[str, Sequence[str]], chosen: Mapping[str, str]
) -> dict[str, Sequence[str]]:
    """Label maps by the new names of their features.

    A map may be of several features below its name (`…/keypoint` of `…/keypoint/x`), or beside one
    (`…/id` of `…/label`): it stays where they keep their names.
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

"""Opening a :class:`DataSource`: the shards, the records and their form."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal, overload

from blake3 import blake3

from tfrecreg.builtin.training.arrays import (
    ArrayColumn,
    Fit,
    ImageSize,
    columns_of,
    expect_channels,
)
from tfrecreg.builtin.training.data_source import DataSource
from tfrecreg.builtin.training.elements import Elements
from tfrecreg.builtin.training.selection import Selection
from tfrecreg.builtin.training.sequence_arrays import columns_of_sequences, image_lists
from tfrecreg.core.check.scan.interface import Shard
from tfrecreg.core.plugins.decoders import DeclaredPixels, decoders_of
from tfrecreg.core.records.batch import Fault, RecordBatch
from tfrecreg.core.records.reader import scan
from tfrecreg.core.records.reading.offsets import RecordOffsets, has_own_index, own_index
from tfrecreg.core.records.reading.shards import ShardPlace, ShardRecords, look_up
from tfrecreg.core.registry.foreign.folders import expect_whole_sets
from tfrecreg.core.registry.history import below, expect_intact
from tfrecreg.core.registry.lookup import Resolved
from tfrecreg.core.registry.registry import RegistryLike
from tfrecreg.core.registry.shardset.files import look_ahead, look_at, names_one_file
from tfrecreg.core.registry.shardset.find import TargetsLike, find, named_targets
from tfrecreg.core.registry.shardset.split_target import (
    SplitTarget,
    chosen_splits,
    expect_listed,
    find_numbers,
    of_target,
    splits_of,
    without_keys,
)
from tfrecreg.core.registry.shardset.target import display_name, files_targets
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.storage.interface import Readable
from tfrecreg.core.storage.paths import looks_remembered
from tfrecreg.core.storage.raw import asked
from tfrecreg.core.values.errors import RefusedError, UsageError
from tfrecreg.core.values.progress import Progress
from tfrecreg.core.values.text import did_you_mean, listed, safe
from tfrecreg.core.values.typed_values import SkipLimit
from tfrecreg.core.workers.interface import Engine

if TYPE_CHECKING:
    from tfrecreg.core.storage.far_files import FarFiles


@overload
def data_source(  # type: ignore[overload-overlap]  # a str is a sequence of str
    target: TargetsLike,
    split: str | None = None,
    *,
    registry: RegistryLike | None = None,
    schema: str | os.PathLike[str] | None = None,
    features: Collection[str] | None = None,
    decode: bool | str | Sequence[str] = False,
    channels: int = 0,
    image_size: tuple[int, int] | int | None = None,
    fit: Fit = "stretch",
    raw: bool = False,
    with_key: bool = False,
    with_digest: bool = False,
    verify: bool = False,
    damaged: Literal["raise", "skip"] = "raise",
    max_damaged: int | str | None = None,
    where: str | None = None,
    engine: Engine | None = None,
    cache: str | os.PathLike[str] | None = None,
    cache_limit: int | str | None = None,
    progress: Progress | bool = True,
) -> DataSource: ...
@overload
def data_source(
    target: TargetsLike,
    split: Sequence[str],
    *,
    registry: RegistryLike | None = None,
    schema: str | os.PathLike[str] | None = None,
    features: Collection[str] | None = None,
    decode: bool | str | Sequence[str] = False,
    channels: int = 0,
    image_size: tuple[int, int] | int | None = None,
    fit: Fit = "stretch",
    raw: bool = False,
    with_key: bool = False,
    with_digest: bool = False,
    verify: bool = False,
    damaged: Literal["raise", "skip"] = "raise",
    max_damaged: int | str | None = None,
    where: str | None = None,
    engine: Engine | None = None,
    cache: str | os.PathLike[str] | None = None,
    cache_limit: int | str | None = None,
    progress: Progress | bool = True,
) -> tuple[DataSource, ...]: ...
@looks_remembered()
def data_source(
    target: TargetsLike,
    split: str | Sequence[str] | None = None,
    *,
    registry: RegistryLike | None = None,
    schema: str | os.PathLike[str] | None = None,
    features: Collection[str] | None = None,
    decode: bool | str | Sequence[str] = False,
    channels: int = 0,
    image_size: tuple[int, int] | int | None = None,
    fit: Fit = "stretch",
    raw: bool = False,
    with_key: bool = False,
    with_digest: bool = False,
    verify: bool = False,
    damaged: Literal["raise", "skip"] = "raise",
    max_damaged: int | str | None = None,
    where: str | None = None,
    engine: Engine | None = None,
    cache: str | os.PathLike[str] | None = None,
    cache_limit: int | str | None = None,
    progress: Progress | bool = True,
) -> DataSource | tuple[DataSource, ...]:
    """The records of a split as a sequence, without TensorFlow.

    Args:
        target: a reference (``mnist@1.0.0``, ``mnist`` for the build), a build or a release; or
            TFRecord files, plain or gzip, of any tool: one or more paths, globs, folders or
            ``prefix@10``, or URLs of them.
        split: an expression such as ``train``, ``train[:80%]``, ``train[1000:2000]`` or
            ``train+validation``. May be left out if there is one split. A list of expressions
            gives a tuple of sequences. For all forms, see
            https://github.com/tfrecreg/tfrecreg/tree/main/docs/training.md
        registry: an open registry or a path in one; None for that of the current folder.
        schema: path of a schema that replaces that of the target.
        features: the features of elements; None for all of the schema.
        decode: whether images come out as uint8 arrays of shape (height, width, channels): True
            for those of the schema, or the features to decode. Values of other formats come out as
            the decoder of a plugin makes them.
        channels: of decoded images: 1, 3 or 4; 0 for those that each image has. Opacity is left
            out of 1 and 3.
        image_size: height and width that decoded images get, resized by Pillow; the length of the
            shorter side with ``fit="short-side"``.
        fit: how they get it: ``"stretch"``, ``"crop"``, ``"pad"`` or ``"short-side"``, as in
            :func:`tfrecreg.load`.
        raw: whether elements are payloads, as `bytes`. Those of an adopted build that holds no
            Examples always are.
        with_key: whether elements are pairs of key and element.
        with_digest: whether elements carry the digest of their record, as ``record/digest``, uint8
            of shape (16,): for the certificate of an epoch.
        verify: whether to compare the digest of every shard of the splits with the manifest first;
            of files without a manifest, to verify every checksum.
        damaged: what batches and iteration do at a damaged record: ``"raise"`` an error, or
            ``"skip"`` it.
        max_damaged: how many records may be skipped: a number, or a share such as ``"0.1%"``.
        where: an SQL condition on the columns of `tfrecreg query`, such as
            ``"label = 'cat' AND width >= 224"``: take only the records of `split` that meet it.
            Needs the extra `query`.
        engine: where the catalog of the records is made for the first `where`; None for this
            process.
        cache: a folder of this machine, for pieces of shards behind URLs: what was read once is
            read from there, also by other processes. Shards on a disk are read as they are.
        cache_limit: what the folder may take: a size such as ``"50GB"``.
        progress: of making the catalog: a bar in a notebook or a terminal; False for none, or an
            object to update.

    Returns:
        A sequence of elements. An element is a dictionary, feature name to NumPy value: a required
        feature of fixed shape is an array of that shape (``()``: a scalar), any other an array of
        one dimension.

    Raises:
        UsageError: there is no such dataset, release, file or split, its bytes are not here, or
            the arguments contradict each other, or `where` is not a condition.
        RefusedError: a shard does not have the size or digest that the manifest says, a set of
            files is incomplete, or `where` would be evaluated on damaged records.
        SchemaError: the schema does not parse.
        ManifestError: a manifest, or a release's schema, was changed after it was made.
        MissingExtraError: `decode` needs Pillow, or `where` needs DuckDB, which is not installed.
        PluginError: a decoder cannot be loaded.
        StorageError: a shard cannot be read.

    Example:
        >>> train = tr.data_source("mnist@1.0.0", "train", registry=reg, decode=True)
        >>> len(train), train[0]["image/encoded"].shape
        (200, (28, 28, 1))
    """
    if not (split is None or isinstance(split, str)):
        targets = named_targets(target)  # an iterable may be read only once
        split = list(split)
        _expect_names(targets, split, registry)
        return tuple(
            data_source(
                targets,
                each,
                registry=registry,
                schema=schema,
                features=features,
                decode=decode,
                channels=channels,
                image_size=image_size,
                fit=fit,
                raw=raw,
                with_key=with_key,
                with_digest=with_digest,
                verify=verify,
                damaged=damaged,
                max_damaged=max_damaged,
                where=where,
                engine=engine,
                cache=cache,
                cache_limit=cache_limit,
                progress=progress,
            )
            for each in split
        )
    limit = _limit(damaged, max_damaged)
    far = None
    if cache is not None or cache_limit is not None:
        from tfrecreg.core.storage.far_files import far_files

        far = far_files(cache, cache_limit)
    size = ImageSize(size=image_size, fit=fit)
    _expect_sense(size, channels, decode)
    group = find_records(target, split, registry, "data_source")
    elements = Elements(with_key=with_key, with_digest=with_digest, damaged=damaged)
    elements = replace(elements, size=size, channels=channels)
    if raw or group.is_raw(schema):
        if with_digest:
            raise UsageError(
                "payloads carry no digest",
                hint="`certificate.add_payloads(payloads)` computes their digests",
            )
        if decode or schema is not None or features is not None:
            raise UsageError(
                "payloads are not decoded, and need no schema and no features"
                if raw
                else f"the records of `{group.name}` are not Examples, and cannot be decoded",
                hint="leave out `decode`, `features` and `schema`" + (", or `raw`" if raw else ""),
            )
        elements = replace(elements, raw=True)
    else:
        columns, images, pixels, sequence = _schema(schema, group)
        if decode is not True or images or not pixels:  # numbers have their shape as they are
            images = _to_decode(decode, images, columns, group)
            elements = replace(elements, images=images)
        elements = replace(elements, columns=columns, sequence=sequence)
        if features is not None:
            elements = elements.only(_known(features, columns))
    how = None
    if elements.images:
        decoders = decoders_of(group.home, pixels)
        if not decoders.pixels.keys() >= set(elements.images):
            decoders.expect()
        how = decoders.array
    if verify:
        _verify(group)
    places, shards = places_of(group, far)
    if with_key and not all(place.index_path for place in places if place.records):
        raise without_keys(group.name)
    counts: dict[str, list[int]] = {name: [] for name in group.splits}
    for place in places:
        counts[place.split].append(place.records)
    ranges = find_numbers(group.words, counts)
    selection = Selection(ranges)
    if where is not None:
        where = where.strip()
        held = [place.records for place in places]
        chosen = group.records_where(ranges, held, where, engine, progress)
        selection = Selection.of_chosen(chosen, where)
    allowed = limit.count if limit.share is None else int(limit.share * len(selection))
    elements = replace(elements, max_damaged=allowed)
    identity = _identity(group, shards)
    values = partial(group.values, [place.records for place in places], progress)
    return DataSource(group.name, shards, selection, elements, identity, how, values=values)


_UNNAMED = "unnamed"
"""The split of files whose names do not say one, where those of others do."""


def _limit(damaged: str, max_damaged: int | str | None) -> SkipLimit:
    if damaged not in ("raise", "skip"):
        raise UsageError(
            f"`damaged` should be `raise` or `skip`, found `{safe(str(damaged))}`",
            hint='`damaged="raise"` is the default',
        )
    if (damaged == "skip") != (max_damaged is not None):
        raise UsageError(
            '`damaged="skip"` and `max_damaged` belong together',
            hint='`damaged="skip", max_damaged="0.1%"` skips one record of a thousand at most',
        )
    try:
        return SkipLimit.parse(max_damaged if max_damaged is not None else 0)
    except ValueError as error:
        raise UsageError(
            f"`max_damaged`: {str(error).replace('items', 'records')}, found "
            f"`{safe(str(max_damaged))}`",
            hint='`max_damaged="0.1%"` skips one record of a thousand at most',
        ) from None


def _expect_sense(size: ImageSize, channels: int, decode: bool | str | Sequence[str]) -> None:
    size.expect_sense()
    expect_channels(channels)
    for name, given in (("image_size", size.size), ("channels", channels or None)):
        if given is not None and not decode:
            raise UsageError(f"`{name}` needs `decode`", hint="add `decode=True`")


def find_records(
    target: TargetsLike, split: str | None, registry: RegistryLike | None, caller: str
) -> SplitTarget:
    """The shards of the splits that an expression names, of one build or release or of files."""
    names = named_targets(target)
    if not names:
        raise UsageError("there is no target to read", hint=f'`{caller}("mnist@1.0.0", "train")`')
    look_at(each for each in names if isinstance(each, str))
    found = [find(name, registry) for name in names]
    if len(found) == 1 and not isinstance(found[0], str):
        return splits_of(found[0], split, caller)
    for each in found:
        if isinstance(each, Resolved):
            raise UsageError(
                f"`{each.name}` cannot be read together with others",
                hint="name one build or release, or files",
            )
    return _of_files([each for each in names if isinstance(each, str)], split, caller)


def _of_files(patterns: list[str], split: str | None, caller: str) -> SplitTarget:
    targets = files_targets(patterns)
    name = display_name(patterns)
    found = [
        shard
        if target.storage is None
        else replace(shard, name=f"{shard.storage.root}/{shard.path}")
        for target in targets
        for shard in target.shards
    ]
    named_one_by_one = all(map(names_one_file, patterns))
    if not named_one_by_one:
        expect_whole_sets(
            found,
            "an incomplete set of shards is not read",
            "bring the missing shards, or name the files to read one by one",
        )
    known = list(dict.fromkeys(shard.split for shard in found))
    if known == [""]:
        known = ["train" if split is None else _only_split(name, split)]
        shards = [replace(shard, split=known[0]) for shard in found]
    else:
        known = [each or _UNNAMED for each in known]
        shards = [replace(shard, split=shard.split or _UNNAMED) for shard in found]
    words, splits = chosen_splits(name, known, split, caller)
    for target in targets:
        expect_listed(target, splits, whole=not named_one_by_one)
    chosen = [shard for each in splits for shard in shards if shard.split == each]
    group = SplitTarget(name, words, splits, chosen, files=tuple(patterns))
    return group if len(targets) > 1 else of_target(targets[0], group)


def _expect_names(
    targets: TargetsLike, splits: Sequence[str], registry: RegistryLike | None
) -> None:
    """Refuse several names for the splits of files whose names say none: each would be all."""
    found = [find(each, registry) for each in named_targets(targets)]
    patterns = [each for each in found if isinstance(each, str)]
    if patterns and len(patterns) == len(found):
        shards = [shard for target in files_targets(patterns) for shard in target.shards]
        if shards and not any(shard.split for shard in shards):
            _only_split(display_name(patterns), "+".join(splits))


def _only_split(name: str, words: str) -> str:
    """The split that an expression calls files whose names say none."""
    named = {part.partition("[")[0].strip() for part in words.split("+")}
    if len(named) > 1:
        raise UsageError(
            f"the names of the files of `{name}` say no split, and {listed(sorted(named))} would "
            "all be the same records",
            hint="`train` or any other one name is all of them; `train[:80%]` is a part",
        )
    return named.pop()


def _schema(
    path: str | os.PathLike[str] | None, group: SplitTarget
) -> tuple[tuple[ArrayColumn, ...] | None, tuple[str, ...], Mapping[str, DeclaredPixels], bool]:
    """The columns of a target, which of them hold images, and which of these hold pixels; and
    whether its records are SequenceExamples.
    """
    found = group.find_schema(path)
    if found is None:
        return None, (), {}, False
    schema = parse_schema(*found)
    sequence = schema.describes_sequences()
    columns = columns_of_sequences(schema) if sequence else columns_of(schema)
    known = {column.name for column in columns}
    images = [*schema.images(), *schema.byte_pixels()]
    if sequence:
        images += image_lists(schema)
    return columns, tuple(each for each in images if each in known), schema.pixels(), sequence


def _known(features: Collection[str], columns: tuple[ArrayColumn, ...] | None) -> Collection[str]:
    """These features, which the schema has."""
    if columns is None:
        raise UsageError(
            "no schema says which features the records have",
            hint='`schema="schemas/mnist.pbtxt"` names one',
        )
    names = [column.name for column in columns]
    chosen = (features,) if isinstance(features, str) else features
    for each in chosen:
        if each not in names:
            raise UsageError(
                f"the schema has no feature `{safe(each)}`{did_you_mean(each, names)}",
                hint=f"available: {listed(names)}",
            )
    return chosen


def _to_decode(
    decode: bool | str | Sequence[str],
    images: tuple[str, ...],
    columns: tuple[ArrayColumn, ...] | None,
    group: SplitTarget,
) -> tuple[str, ...]:
    """The features to decode."""
    if decode is False or decode == []:
        return ()
    chosen = images
    names = None if columns is None else [column.name for column in columns]
    if decode is not True:
        chosen = (decode,) if isinstance(decode, str) else tuple(decode)
        for each in chosen:
            if names is not None and each not in names:
                raise UsageError(
                    f"the schema has no feature `{safe(each)}` to decode",
                    hint=f"available: {listed(names)}",
                )
    if not chosen:
        raise UsageError(
            "no schema says which features hold images"
            if columns is None
            else "the schema has no feature that holds images",
            hint=_named_images(group, names),
        )
    return chosen


def _named_images(group: SplitTarget, known: Collection[str] | None) -> str:
    """The hint about images that no schema declares: what the first record has."""
    from tfrecreg.core.example.format_payload import images_in  # few targets have such images

    decoders = decoders_of(group.home)
    for shard in group.shards:
        first = next(scan(shard.storage, shard.path), None)
        if not isinstance(first, RecordBatch) or not first.whole:
            continue
        found = dict.fromkeys(each.feature for each in images_in(first.example(0) or {}, decoders))
        names = [each for each in found if known is None or each in known]
        if names:
            return f"`decode={json.dumps(names)}` decodes the images of the first record"
        if found:
            return f"the schema does not declare {listed(found)}, which the first record has"
        return "the first record holds no image; `tfrecreg head` shows it"
    return "in a schema, `image_domain {}` says which features do"


def _verify(group: SplitTarget) -> None:
    """Read all shards, and refuse those that changed."""
    if group.manifest is not None and group.storage is not None:
        entries = [shard.entry for shard in group.shards if shard.entry is not None]
        indexes = {each.index for each in entries}
        files = [each for each in group.manifest.files if each.path in indexes]
        expect_intact(
            replace(group.manifest, shards=entries, files=files),
            below(group.storage),
            what=f"the bytes of `{group.name}`",
            hint=f"tfrecreg check {group.name}",
        )
        return
    for shard in group.shards:
        for event in scan(shard.storage, shard.path):
            if isinstance(event, Fault):
                shown = safe(shard.name, limit=1000)
                record = "" if event.record is None else f"record {event.record} of "
                raise RefusedError(
                    f"{record}`{shown}`, at byte {event.offset}, is damaged: {event.code}: "
                    f"{event.detail}",
                    hint=f"`tfrecreg check {shown}` shows all damage",
                )


def places_of(group: SplitTarget, far: FarFiles | None) -> tuple[list[ShardPlace], ShardRecords]:
    """The shards of a target, and their records, behind URLs through a cache if there is one."""
    files = group.manifest.files if group.manifest is not None else ()
    digests = {each.path: each.blake3 for each in files}

    def looked_at(shard: Shard) -> tuple[ShardPlace, RecordOffsets | None]:
        storage, entry = shard.storage, shard.entry
        place = ShardPlace(
            root=storage.root,
            path=shard.path,
            name=shard.name,
            split=shard.split,
            index_path=_index_of(storage, shard),
            records=0,
            size=0,
            mtime_ns=0,
        )
        if entry is not None:
            status = storage.stat(shard.path)
            stamp = status.mtime_ns if status is not None else 0
            place = place._replace(
                records=entry.records,
                size=entry.bytes,
                mtime_ns=stamp,
                stream_blake3=entry.stream_blake3,
                index_blake3=digests.get(entry.index, ""),
            )
            return place, None
        found = look_up(place, far)
        place = place._replace(records=len(found.offsets), size=found.size, mtime_ns=found.mtime_ns)
        return place, found

    in_store = not all(shard.storage.is_local for shard in group.shards)
    if in_store:
        look_ahead((each.storage.root, each.path) for each in group.shards)
        look_ahead((each.storage.root, _index_path(each)) for each in group.shards)
    looked = asked(looked_at, group.shards, in_store=in_store)
    places = [place for place, _ in looked]
    shards = ShardRecords(places, far)
    for at, (_, found) in enumerate(looked):
        if found is not None:
            shards.remember(at, found)
    return places, shards


def _index_path(shard: Shard) -> str:
    return own_index(shard.path) if shard.entry is None else shard.entry.index


def _index_of(storage: Readable, shard: Shard) -> str:
    path = _index_path(shard)
    if shard.entry is None:
        return path if has_own_index(storage, shard.path) else ""
    return path if path and storage.stat(path) is not None else ""


def _identity(group: SplitTarget, shards: ShardRecords) -> str:
    """Of the records of these shards, in their order: by the manifest, or by their lengths."""
    hasher = blake3()
    for at, shard in enumerate(group.shards):
        if shard.entry is not None:
            text = f"{shard.entry.records} {shard.entry.stream_blake3}\n"
        else:
            name = os.path.basename(shard.path)  # noqa: PTH119 - a str stays a str
            text = f"{shards.lengths_digest(at)} {name}\n"
        hasher.update(text.encode("utf-8", "surrogateescape"))
    return hasher.hexdigest(16)

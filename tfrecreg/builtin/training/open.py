"""Opens a :class:`DataSource`: finds its shards, its records and their form."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Concatenate, Literal, ParamSpec, Protocol, TypeVar, cast, overload

from blake3 import blake3

from tfrecreg.builtin.training.arrays import (
    Elements,
    Fit,
    ImageSize,
    columns_of,
    expect_features,
)
from tfrecreg.builtin.training.batches import far_files_of
from tfrecreg.builtin.training.data_source import DataSource
from tfrecreg.builtin.training.images import Decode
from tfrecreg.builtin.training.selection import Selection
from tfrecreg.builtin.training.splits import (
    SplitTarget,
    chosen_splits,
    expect_listed,
    splits_of,
    without_keys,
)
from tfrecreg.core.check.scan.interface import Shard
from tfrecreg.core.example.sequences import compile_sequences
from tfrecreg.core.plugins.decoders import DeclaredPixels, decoders_of
from tfrecreg.core.records.batch import Fault
from tfrecreg.core.records.reader import scan
from tfrecreg.core.records.reading.offsets import RecordOffsets, has_own_index, own_index
from tfrecreg.core.records.reading.shards import ShardPlace, ShardRecords, look_up
from tfrecreg.core.registry.data import Built, Files, Resolved, TargetsLike
from tfrecreg.core.registry.find import (
    display_name,
    files_by_build,
    find_built,
    find_data,
    named_targets,
    target_of,
)
from tfrecreg.core.registry.foreign.folders import expect_whole_sets
from tfrecreg.core.registry.history import expect_intact
from tfrecreg.core.registry.registry import RegistryLike
from tfrecreg.core.registry.splits import find_numbers
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.storage.paths import looks_remembered
from tfrecreg.core.storage.raw import asked
from tfrecreg.core.storage.words import look_ahead, look_at, names_one_file
from tfrecreg.core.values.errors import RefusedError, UsageError
from tfrecreg.core.values.progress import Progress
from tfrecreg.core.values.text import listed
from tfrecreg.core.values.typed_values import SkipLimit, expect_one_of
from tfrecreg.core.workers.interface import Engine

if TYPE_CHECKING:
    from tfrecreg.core.storage.far_files import FarFiles


P = ParamSpec("P")
R = TypeVar("R", covariant=True)


class PerSplit(Protocol[P, R]):
    """A function that reads one split. For a list of expressions, it returns a tuple of results."""

    @overload
    def __call__(  # type: ignore[overload-overlap]  # a str is a sequence of str
        self, target: TargetsLike, split: str | None = None, *args: P.args, **options: P.kwargs
    ) -> R: ...
    @overload
    def __call__(
        self, target: TargetsLike, split: Sequence[str], *args: P.args, **options: P.kwargs
    ) -> tuple[R, ...]: ...
    def __get__(self, version: object, kind: type | None = None, /) -> PerSplitOf[P, R]: ...


class PerSplitOf(Protocol[P, R]):
    """A method of a build or release. Like a :class:`PerSplit`, it reads one split."""

    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, split: str | None = None, *args: P.args, **options: P.kwargs
    ) -> R: ...
    @overload
    def __call__(
        self, split: Sequence[str], *args: P.args, **options: P.kwargs
    ) -> tuple[R, ...]: ...


def per_split(
    function: Callable[Concatenate[TargetsLike, str | Sequence[str] | None, P], R | tuple[R, ...]],
) -> PerSplit[P, R]:
    """The function, unchanged. For type checkers, `split` decides the type of the result."""
    return cast("PerSplit[P, R]", function)


@per_split
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
            plain or gzip TFRecord files, written by any tool: one or more paths, URLs, globs,
            folders or ``prefix@10``.
        split: an expression such as ``train``, ``train[:80%]``, ``train[1000:2000]`` or
            ``train+validation``. Optional if there is one split. A list of expressions gives a
            tuple of sequences. All forms of expressions are described in
            https://github.com/tfrecreg/tfrecreg/tree/main/docs/training.md
        registry: an open registry, or a path in a registry. None means the current folder's
            registry.
        schema: path of a schema that replaces the target's own.
        features: the features of elements; None for all features of the schema.
        decode: whether images come out as uint8 arrays of shape (height, width, channels). True
            decodes all images that the schema declares. A list of feature names decodes only these
            features. Plugins decode other formats.
        channels: number of channels of decoded images: 1, 3 or 4. 0 keeps the channels of each
            image. Opacity is kept only with 4 channels.
        image_size: height and width to which Pillow resizes decoded images. With
            ``fit="short-side"``, it is the length of the shorter side.
        fit: how images get this size. :func:`tfrecreg.load` describes the values ``"stretch"``,
            ``"crop"``, ``"pad"`` and ``"short-side"``.
        raw: whether each element is the payload of its record, as `bytes`. An adopted build that
            holds no Examples always yields payloads.
        with_key: whether elements are pairs of key and element.
        with_digest: whether each element has the digest of its record as the feature
            ``record/digest``, uint8 of shape (16,). Certificates of epochs need this digest.
        verify: whether the digest of every shard in the splits is compared with the manifest first.
            For files without a manifest, every checksum is verified instead.
        damaged: what batches and iteration do at a damaged record: ``"raise"`` raises an error,
            ``"skip"`` leaves the record out.
        max_damaged: how many records may be skipped: a number, or a share such as ``"0.1%"``.
        where: an SQL condition on the columns of `tfrecreg query`, such as
            ``"label = 'cat' AND width >= 224"``: take only the records of `split` that meet it.
            Needs the extra `query`.
        engine: makes the catalog of the records when `where` is first used. None makes it in this
            process.
        cache: a local folder. It keeps pieces of shards that are read from URLs. Later reads, also
            in other processes, take them from there. Shards on a disk are read directly.
        cache_limit: maximum size of the folder: a size such as ``"50GB"``.
        progress: whether a bar is shown in a notebook or a terminal while the catalog is made. A
            :class:`Progress` object is updated instead.

    Returns:
        A sequence of elements. An element is a dictionary from feature name to NumPy value. A
        required feature of fixed shape is an array of that shape (``()``: a scalar). Any other
        feature has one dimension, unless the schema gives a shape with one unknown side. The array
        then has that shape.

    Raises:
        UsageError: there is no such dataset, release, file or split, the bytes are not on this
            machine, arguments contradict each other, or `where` is not a condition.
        RefusedError: a shard does not have the size or digest stated in the manifest, a set of
            files is incomplete, or `where` would be evaluated on damaged records.
        SchemaError: the schema does not parse.
        ManifestError: a manifest, or a release's schema, was changed after it was made.
        MissingExtraError: Pillow for `decode`, or DuckDB for `where`, is not installed.
        PluginError: a decoder cannot be loaded.
        StorageError: a shard cannot be read.

    Example:
        >>> train = tr.data_source("mnist@1.0.0", "train", registry=reg, decode=True)
        >>> len(train), train[0]["image/encoded"].shape
        (200, (28, 28, 1))
    """
    size = ImageSize(size=image_size, fit=fit, channels=channels)
    size.expect_sense(decodes=bool(decode))
    form = Elements(raw=raw, with_key=with_key, with_digest=with_digest, size=size, damaged=damaged)
    limit = _limit(damaged, max_damaged)
    far = far_files_of(cache, cache_limit)
    targets = named_targets(target)  # an iterable may be read only once

    def opened(split: str | None) -> DataSource:
        group = find_records(targets, split, registry)
        elements, decoded = _elements(form, group, schema, features, decode)
        if verify:
            _verify(group)
        places, shards = places_of(group, far)
        if with_key and not all(place.index_path for place in places if place.records):
            raise without_keys(group.name)
        held = [place.records for place in places]
        selection = select(group, held, where, engine, progress)
        allowed = limit.count if limit.share is None else int(limit.share * len(selection))
        return DataSource(
            group.name,
            shards,
            selection,
            replace(elements, max_damaged=allowed),
            _identity(group, shards),
            decoded,
            values=partial(group.values, held, progress),
        )

    return each_split(targets, split, registry, opened)


def each_split(
    targets: Sequence[str | Built],
    split: str | Sequence[str] | None,
    registry: RegistryLike | None,
    opened: Callable[[str | None], R],
) -> R | tuple[R, ...]:
    """What `opened` returns for an expression. For a list of expressions, a tuple of results."""
    if split is None or isinstance(split, str):
        return opened(split)
    splits = list(split)
    look_at(each for each in targets if isinstance(each, str))
    files = [each for each in find_data(targets, registry) if isinstance(each, Files)]
    named = [shard.split for each in files for shard in target_of(each).shards]
    if named and not any(named):  # each of the splits would contain all records
        _only_split(display_name(files[0].words), "+".join(splits))
    return tuple(map(opened, splits))


def select(
    group: SplitTarget,
    held: Sequence[int],
    where: str | None,
    engine: Engine | None,
    progress: Progress | bool,
) -> Selection:
    """The records that a target's expression and a condition select. `held` is the number of
    records in each shard."""
    counts: dict[str, list[int]] = {name: [] for name in group.splits}
    for shard, records in zip(group.shards, held, strict=True):
        counts[shard.split].append(records)
    numbers = find_numbers(group.words, counts)
    if where is None:
        return Selection(numbers)
    chosen = group.records_where(numbers, held, where.strip(), engine, progress)
    return Selection.of_chosen(chosen, where.strip())


def _elements(
    form: Elements,
    group: SplitTarget,
    path: str | os.PathLike[str] | None,
    features: Collection[str] | None,
    decode: bool | str | Sequence[str],
) -> tuple[Elements, Decode | None]:
    """The form of the elements according to the schema, and the decoder of their images."""
    if form.raw or group.is_raw(path):
        if form.with_digest or decode or path is not None or features is not None:
            raise UsageError(
                f"records of `{group.name}` are read as payloads: `schema`, `features`, `decode` "
                "and `with_digest` do not apply"
            )
        return replace(form, raw=True), None
    elements, images, pixels = form, list[str](), dict[str, DeclaredPixels]()
    found = group.find_schema(path)
    if found is not None:
        schema = parse_schema(*found)
        sequence = schema.describes_sequences()
        elements = replace(form, columns=columns_of(schema), sequence=sequence)
        pixels = schema.pixels()
        images = [*schema.images(), *schema.byte_pixels()]
        if sequence:
            rules = compile_sequences(schema).lists
            images += [each.feature.name for each in rules if each.feature.is_image]
    names = [column.name for column in elements.columns or ()]
    if isinstance(decode, bool):
        chosen = tuple(each for each in images if each in names) if decode else ()
        if decode and not chosen and not pixels:  # pixels stored as numbers already have a shape
            raise UsageError(
                "no schema says which features are images: name them with `decode=[…]`"
            )
    else:
        chosen = (decode,) if isinstance(decode, str) else tuple(decode)
        if elements.columns is not None:
            expect_features(chosen, names)
    elements = replace(elements, images=chosen)
    if features is not None:
        elements = elements.only(features)
    if not elements.images:
        return elements, None
    decoders = decoders_of(group.home, pixels)
    if not decoders.pixels.keys() >= set(elements.images):
        decoders.expect()
    return elements, decoders.array


_UNNAMED = "unnamed"
"""If only some file names state a split, the files without a stated split get this split."""


def _limit(damaged: str, max_damaged: int | str | None) -> SkipLimit:
    expect_one_of("damaged", damaged, ("raise", "skip"))
    if (damaged == "skip") != (max_damaged is not None):
        raise UsageError('`damaged="skip"` and `max_damaged` need each other')
    try:
        return SkipLimit.parse(0 if max_damaged is None else max_damaged)
    except ValueError as error:
        reason = str(error).replace("items", "records")
        raise UsageError(f"`max_damaged`: {reason}, found `{max_damaged}`") from None


def find_records(
    target: TargetsLike, split: str | None, registry: RegistryLike | None
) -> SplitTarget:
    """The shards of the splits in an expression. The target is either files, or a single build or
    release."""
    names = named_targets(target)
    if not names:
        raise UsageError("there is no target to read")
    look_at(each for each in names if isinstance(each, str))
    found = [find_built(name, registry) for name in names]
    if len(found) == 1 and found[0] is not None:
        return splits_of(found[0], split)
    for each in found:
        if isinstance(each, Resolved):
            raise UsageError(f"`{each.name}` cannot be read together with other targets")
    return _of_files([each for each in names if isinstance(each, str)], split)


def _of_files(patterns: list[str], split: str | None) -> SplitTarget:
    named = files_by_build(patterns)
    targets = [target_of(each) for each in named]
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
            "bring the missing shards, or name each file to read",
        )
    known = list(dict.fromkeys(shard.split for shard in found))
    if known == [""]:
        known = ["train" if split is None else _only_split(name, split)]
        shards = [replace(shard, split=known[0]) for shard in found]
    else:
        known = [each or _UNNAMED for each in known]
        shards = [replace(shard, split=shard.split or _UNNAMED) for shard in found]
    words, splits = chosen_splits(name, known, split)
    for target in targets:
        expect_listed(target, splits, whole=not named_one_by_one)
    chosen = [shard for each in splits for shard in shards if shard.split == each]
    if len(named) > 1:
        whole = Files(name, tuple(patterns), tuple(found))
        return SplitTarget(name, words, splits, chosen, whole)
    return SplitTarget(name, words, splits, chosen, named[0], targets[0].storage)


def _only_split(name: str, words: str) -> str:
    """Return the split that an expression names. Refuse an expression with several splits, because
    the names of the files do not contain a split."""
    named = {part.partition("[")[0].strip() for part in words.split("+")}
    if len(named) > 1:
        raise UsageError(
            f"the files of `{name}` have no split in their names, so "
            f"{listed(sorted(named))} would each contain all records"
        )
    return named.pop()


def _verify(group: SplitTarget) -> None:
    """Read all shards, and refuse changed or damaged shards."""
    if group.manifest is not None and group.storage is not None:
        entries = [shard.entry for shard in group.shards if shard.entry is not None]
        indexes = {each.index for each in entries}
        files = [each for each in group.manifest.files if each.path in indexes]
        expect_intact(
            replace(group.manifest, shards=entries, files=files),
            group.storage,
            what=f"the bytes of `{group.name}`",
            hint=f"tfrecreg check {group.name}",
        )
        return
    for shard in group.shards:
        for event in scan(shard.storage, shard.path):
            if isinstance(event, Fault):
                record = "" if event.record is None else f"record {event.record} of "
                raise RefusedError(
                    f"{record}`{shard.name}`, at byte {event.offset}, is damaged: {event.code}: "
                    f"{event.detail}"
                )


def places_of(group: SplitTarget, far: FarFiles | None) -> tuple[list[ShardPlace], ShardRecords]:
    """The shards of a target, and a reader of their records. Shards behind URLs use the cache."""
    files = group.manifest.files if group.manifest is not None else ()
    digests = {each.path: each.blake3 for each in files}

    def looked_at(shard: Shard) -> tuple[ShardPlace, RecordOffsets | None]:
        storage, entry = shard.storage, shard.entry
        index, root = _index_path(shard), storage.root
        if entry is None:
            index = index if has_own_index(storage, shard.path) else ""
        elif not index or storage.stat(index) is None:
            index = ""
        place = ShardPlace(root, shard.path, shard.name, shard.split, index, 0, 0, 0)
        if entry is None:
            found = look_up(place, far)
            size, stamp = found.size, found.mtime_ns
            return place._replace(records=len(found.offsets), size=size, mtime_ns=stamp), found
        status = storage.stat(shard.path)
        place = place._replace(
            records=entry.records,
            size=entry.bytes,
            mtime_ns=status.mtime_ns if status is not None else 0,
            stream_blake3=entry.stream_blake3,
            index_blake3=digests.get(entry.index, ""),
        )
        return place, None

    look_ahead((each.storage, each.path) for each in group.shards)
    look_ahead((each.storage, _index_path(each)) for each in group.shards)
    looked = asked(looked_at, group.shards, (each.storage.root for each in group.shards))
    places = [place for place, _ in looked]
    shards = ShardRecords(places, far)
    for at, (_, found) in enumerate(looked):
        if found is not None:
            shards.remember(at, found)
    return places, shards


def _index_path(shard: Shard) -> str:
    return own_index(shard.path) if shard.entry is None else shard.entry.index


def _identity(group: SplitTarget, shards: ShardRecords) -> str:
    """A digest that identifies the records and the order of the records. The digest comes from the
    manifest, or from the names of the files and the lengths of the records.
    """
    hasher = blake3()
    for at, shard in enumerate(group.shards):
        if shard.entry is not None:
            text = f"{shard.entry.records} {shard.entry.stream_blake3}\n"
        else:
            name = os.path.basename(shard.path)  # noqa: PTH119 - a str stays a str
            text = f"{shards.lengths_digest(at)} {name}\n"
        hasher.update(text.encode("utf-8", "surrogateescape"))
    return hasher.hexdigest(16)

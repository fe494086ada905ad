"""A build or a release as a `tf.data.Dataset`; `tf_dataset` has the graph.

The only home of TensorFlow among the operations.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache as memo
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from blake3 import blake3

from tfrecreg._version import __version__
from tfrecreg.builtin.training.arrays import Fit
from tfrecreg.builtin.training.elements import RecordRun, find_pieces, host_numbers, host_part
from tfrecreg.builtin.training.open import find_records, places_of
from tfrecreg.builtin.training.tf_dataset.chosen import NumberedRecords
from tfrecreg.builtin.training.tf_dataset.form import (
    ElementForm,
    FormRequest,
    find_form,
    with_others,
)
from tfrecreg.builtin.training.tf_dataset.images import ImageFit, Method
from tfrecreg.builtin.training.tf_dataset.pipeline import PipelineOptions, make_dataset
from tfrecreg.core.check.scan.conditions import shown_progress
from tfrecreg.core.check.scan.interface import Shard
from tfrecreg.core.plugins.bundled import OURS
from tfrecreg.core.plugins.decoders import decoders_of
from tfrecreg.core.records.hashing import hash_file
from tfrecreg.core.records.reading.offsets import RecordOffsets
from tfrecreg.core.records.reading.shards import ShardPlace
from tfrecreg.core.registry.lookup import Resolved
from tfrecreg.core.registry.manifest import ShardEntry
from tfrecreg.core.registry.registry import RegistryLike
from tfrecreg.core.registry.shardset.find import TargetsLike
from tfrecreg.core.registry.shardset.load_records import SplitRecords
from tfrecreg.core.registry.shardset.split_target import SplitTarget, find_numbers, without_keys
from tfrecreg.core.registry.shardset.target import files_target
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.storage.paths import looks_remembered
from tfrecreg.core.values.errors import FailureError, MissingExtraError, UsageError
from tfrecreg.core.values.progress import Progress
from tfrecreg.core.values.text import DOCS, safe
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine

if TYPE_CHECKING:
    import tensorflow as tf

    from tfrecreg.core.storage.far_files import FarFiles


@overload
def load(
    reference: TargetsLike,
    split: str | None = None,
    *,
    registry: RegistryLike | None = None,
    schema: str | os.PathLike[str] | None = None,
    features: Sequence[str] | None = None,
    decode: bool = False,
    channels: int = 0,
    image_size: tuple[int, int] | int | None = None,
    fit: Fit = "stretch",
    method: Method = "bilinear",
    antialias: bool = False,
    tensors: Mapping[str, Any] | None = None,
    ragged: bool = False,
    pad_to: int | Mapping[str, int] | Literal["longest"] | None = None,
    as_supervised: bool | tuple[str, str] = False,
    with_key: bool = False,
    with_digest: bool = False,
    batch_size: int | None = None,
    drop_remainder: bool = False,
    shuffle: bool | int = False,
    seed: int | None = None,
    repeat: bool | int = False,
    cache: bool | str | os.PathLike[str] = "auto",
    cache_limit: int | str | None = None,
    prefetch: int | None = None,
    deterministic: bool = True,
    host: int = 0,
    hosts: int = 1,
    options: tf.data.Options | None = None,
    where: str | None = None,
    engine: Engine | None = None,
    progress: Progress | bool = True,
) -> tf.data.Dataset: ...
@overload
def load(
    reference: TargetsLike,
    split: Sequence[str],
    *,
    registry: RegistryLike | None = None,
    schema: str | os.PathLike[str] | None = None,
    features: Sequence[str] | None = None,
    decode: bool = False,
    channels: int = 0,
    image_size: tuple[int, int] | int | None = None,
    fit: Fit = "stretch",
    method: Method = "bilinear",
    antialias: bool = False,
    tensors: Mapping[str, Any] | None = None,
    ragged: bool = False,
    pad_to: int | Mapping[str, int] | Literal["longest"] | None = None,
    as_supervised: bool | tuple[str, str] = False,
    with_key: bool = False,
    with_digest: bool = False,
    batch_size: int | None = None,
    drop_remainder: bool = False,
    shuffle: bool | int = False,
    seed: int | None = None,
    repeat: bool | int = False,
    cache: bool | str | os.PathLike[str] = "auto",
    cache_limit: int | str | None = None,
    prefetch: int | None = None,
    deterministic: bool = True,
    host: int = 0,
    hosts: int = 1,
    options: tf.data.Options | None = None,
    where: str | None = None,
    engine: Engine | None = None,
    progress: Progress | bool = True,
) -> tuple[tf.data.Dataset, ...]: ...
def load(
    reference: TargetsLike,
    split: str | Sequence[str] | None = None,
    *,
    registry: RegistryLike | None = None,
    schema: str | os.PathLike[str] | None = None,
    features: Sequence[str] | None = None,
    decode: bool = False,
    channels: int = 0,
    image_size: tuple[int, int] | int | None = None,
    fit: Fit = "stretch",
    method: Method = "bilinear",
    antialias: bool = False,
    tensors: Mapping[str, Any] | None = None,
    ragged: bool = False,
    pad_to: int | Mapping[str, int] | Literal["longest"] | None = None,
    as_supervised: bool | tuple[str, str] = False,
    with_key: bool = False,
    with_digest: bool = False,
    batch_size: int | None = None,
    drop_remainder: bool = False,
    shuffle: bool | int = False,
    seed: int | None = None,
    repeat: bool | int = False,
    cache: bool | str | os.PathLike[str] = "auto",
    cache_limit: int | str | None = None,
    prefetch: int | None = None,
    deterministic: bool = True,
    host: int = 0,
    hosts: int = 1,
    options: tf.data.Options | None = None,
    where: str | None = None,
    engine: Engine | None = None,
    progress: Progress | bool = True,
) -> tf.data.Dataset | tuple[tf.data.Dataset, ...]:
    """The examples of a build or a release, parsed by its schema.

    Without further arguments it is a plain dataset: one element per example, in the order of the
    shards.

    Args:
        reference: ``mnist@1.0.0``, ``mnist@latest``, ``mnist`` for the build; the build or
            release itself; a folder that holds a build with its manifest; or TFRecord files of any
            tool, as for :func:`tfrecreg.data_source`. The folder of a build may be a URL: then the
            shards are copied into the user's cache, once, or with `cache_limit` read through a
            cache.
        split: an expression such as ``train``, ``train[:80%]`` or ``train+validation``. May be
            left out if there is one split. A list of expressions gives a tuple of datasets. For
            all forms, see https://github.com/tfrecreg/tfrecreg/tree/main/docs/training.md
        registry: an open registry or a path in one; None for that of the current folder.
        schema: path of a schema that replaces that of the target. The folder of a build without
            `schema.pbtxt` needs one. For files without a manifest it is drafted from all of their
            records, as by ``tfrecreg schema infer``.
        features: parse these features only.
        decode: whether images come out as uint8 tensors of shape (height, width, channels)
            instead of their encoded bytes. Features that may hold several images, or none, stay
            encoded. The error of one that does not decode names its record. Images of other
            formats come out as the decoder of a plugin makes them.
        channels: of decoded images: 1, 3 or 4; 0 for those that each image has.
        image_size: height and width that decoded images get; the length of the shorter side with
            ``fit="short-side"``.
        fit: how they get it: ``"stretch"`` each side, ``"crop"`` the largest part in the middle
            that has that shape, ``"pad"`` with black, or ``"short-side"``: keep the shape of the
            image.
        method: of the resizing, as of `tf.image.resize`.
        antialias: whether to filter before images are made smaller.
        tensors: features that hold tensors written by `tf.io.serialize_tensor`, and the
            `tf.TensorSpec` or data type of each. They come as these tensors.
        ragged: whether features of varying length are ragged tensors instead of sparse ones.
        pad_to: pad features of varying length with zeros or empty strings, to dense tensors: all
            to one length, each to a length of its own, or with ``"longest"`` to the longest of the
            batch. A record with more values than a given length is an error.
        as_supervised: whether elements are pairs of image and label; or the names of two features.
        with_key: whether elements have the key of their record, as ``record/key``.
        with_digest: whether elements have the digest of their record, as ``record/digest``, uint8
            of shape (16,): for the certificate of an epoch.
        batch_size: number of elements in a batch; None for single elements. Images of a
            batch need one size.
        drop_remainder: whether to drop a smaller last batch.
        shuffle: whether to shuffle in each epoch: the shards, and then records in a buffer; or the
            number of records in that buffer.
        seed: seed of the shuffle.
        repeat: number of epochs; True repeats forever.
        cache: whether to keep decoded elements in memory; or in files whose names begin with this
            path and end with a digest of what they hold, so that other records, arguments or
            versions get files of their own. Nothing removes these files.
            ``"auto"`` keeps batches of images of one known shape if they take at most 250 MiB. With
            `cache_limit`, a folder of this machine instead, through which shards behind a URL are
            read.
        cache_limit: size of that folder: bytes, or text such as ``"50GB"``.
        prefetch: batches or elements to prepare ahead; None for an automatic number if there is a
            batch size, else none.
        deterministic: False to read several shards at once, in any order, without a shuffle.
        host: number of this host, from 0.
        hosts: number of hosts that share the records: whole shards if `hosts` divides
            their number and there is no `where`, else records.
        options: of `tf.data`, applied last.
        where: an SQL condition on the columns of `tfrecreg query`, such as
            ``"label = 'cat' AND width >= 224"``: take only the records of `split` that meet it, and
            read no others. Needs the extra `query`.
        engine: where the catalog of the records is made for the first `where`; None for this
            process.
        progress: of that: a bar in a notebook or a terminal; False for none, or an object to
            update.

    Returns:
        A dataset of dictionaries, feature name to tensor. A required feature of fixed shape is a
        dense tensor of that shape, everything else a sparse one, unless `ragged` or `pad_to` says
        otherwise. The elements of a build that was adopted and holds no Examples are the
        payloads, as scalar strings. It knows its length. Records that are damaged, that do not
        parse, or that are not there raise a `tf.errors.InvalidArgumentError` that names shard,
        record and key.

    Raises:
        UsageError: no such dataset, release, split or feature, its bytes are not on this machine,
            the arguments contradict each other, or `where` is not a condition.
        RefusedError: a shard does not have the size that the manifest says, or `where` would be
            evaluated on damaged records.
        SchemaError: the schema does not parse.
        ManifestError: a manifest, or a release's schema, was changed after it was made.
        MissingExtraError: TensorFlow, or DuckDB for `where`, is not installed.
        FailureError: TensorFlow is installed and does not work.

    Example:
        >>> train = tr.load("mnist@1.0.0", "train", registry=reg, decode=True)
        >>> for batch in train.batch(32).take(1):
        ...     print(batch["image/encoded"].shape)
        (32, 28, 28, 1)
        >>> train, test = tr.load("mnist@1.0.0", ["train", "test"], registry=reg, batch_size=32)
        >>> len(train), len(test)
        (7, 2)
    """
    if isinstance(features, str):
        features = (features,)
    if isinstance(cache, os.PathLike):
        cache = os.fspath(cache)
    chosen = PipelineOptions(
        batch_size=batch_size,
        drop_remainder=drop_remainder,
        shuffle=shuffle,
        seed=seed,
        repeat=repeat,
        cache=cache if cache_limit is None else False,
        prefetch=prefetch,
        deterministic=deterministic,
    )
    request = FormRequest(
        features=None if features is None else tuple(features),
        decode=decode,
        channels=channels,
        fit=ImageFit(size=image_size, fit=fit, method=method, antialias=antialias),
        tensors=dict(tensors or {}),
        ragged=ragged,
        pad_to=pad_to,
        as_supervised=as_supervised,
        with_key=with_key,
        with_digest=with_digest,
    )
    _expect_sense(chosen, request)
    far = None
    if cache_limit is not None:
        from tfrecreg.core.storage.far_files import far_files

        folder = None if isinstance(cache, bool) or cache == "auto" else cache
        far = far_files(folder, cache_limit)
    make = partial(
        _make_split,
        reference,
        registry=registry,
        schema=schema,
        how=chosen,
        request=request,
        # The splits of files have one schema, which is drafted once.
        draft=memo(partial(_draft, engine=engine, progress=progress)),
        host=host,
        hosts=hosts,
        options=options,
        where=where,
        engine=engine,
        progress=progress,
        far=far,
    )
    if split is None or isinstance(split, str):
        return make(split)
    return tuple(map(make, split))


@looks_remembered()
def _make_split(
    reference: TargetsLike,
    split: str | None,
    *,
    registry: RegistryLike | None,
    schema: str | os.PathLike[str] | None,
    how: PipelineOptions,
    request: FormRequest,
    draft: Callable[[tuple[str, ...]], tuple[str, str]],
    host: int,
    hosts: int,
    options: tf.data.Options | None,
    where: str | None,
    engine: Engine | None,
    progress: Progress | bool,
    far: FarFiles | None,
) -> tf.data.Dataset:
    """The dataset of one expression."""
    target = _find(reference, split, registry, copy=far is None)
    form, pixels, text = ElementForm(), dict[str, tuple[int, int, int]](), ""
    if target.is_raw(schema):
        request.expect_nothing()
    else:
        found = target.find_schema(schema)
        if found is None and target.manifest is None:
            found = draft(target.files)
        if found is None:
            raise UsageError(
                f"no schema says how to parse the records of `{target.name}`",
                hint='`schema="schemas/mnist.pbtxt"` names one',
            )
        text = found[0]
        parsed = parse_schema(*found)
        pixels = parsed.byte_pixels()
        form = find_form(parsed, request)
    shards, read = target.shards, None
    if target.storage is None or not target.storage.is_local:
        places, read = places_of(target, far)
        shards = [
            shard
            if shard.entry is not None
            else replace(shard, entry=_entry(place, read.located(at)))
            for at, (shard, place) in enumerate(zip(shards, places, strict=True))
        ]
    records = SplitRecords(shards, target.name)
    if request.with_key and not records.have_keys:
        raise without_keys(target.name)
    counts: dict[str, list[int]] = {name: [] for name in target.splits}
    held = [each.entry.records for each in shards if each.entry is not None]
    for shard, count in zip(shards, held, strict=True):
        counts[shard.split].append(count)
    numbers = find_numbers(target.words, counts)
    pieces: Sequence[RecordRun] | NumberedRecords
    if where is None:
        share = host_numbers(numbers, records.starts, host, hosts, target.name)
        pieces = find_pieces(share, records.starts)
        if read is not None:
            every = [np.arange(each.start, each.stop) for each in share]
            pieces = NumberedRecords(np.concatenate(every), read)
    else:
        chosen = target.records_where(numbers, held, where, engine, progress)
        pieces = NumberedRecords(host_part(np.concatenate(chosen), host, hosts, target.name), read)
    tensorflow = _tensorflow()
    decoders = decoders_of(target.home, pixels)
    form = with_others(tensorflow, records, form, decoders)
    if isinstance(how.cache, str) and how.cache not in ("", "auto"):
        from tfrecreg.core.plugins.code_digest import code_of

        code = [__version__, code_of(OURS), tensorflow.__version__]
        code += decoders.third_party_names() if form.others else []
        which: object = pieces
        if isinstance(pieces, NumberedRecords):
            which = blake3(pieces.numbers.tobytes()).hexdigest()
        kept = code, text, request, how.grouping, list(map(_content, shards)), which
        digest = blake3(repr(kept).encode("utf-8", "surrogateescape")).hexdigest(8)
        how = replace(how, cache=f"{how.cache}-{digest}")
    compression = "none" if target.manifest is None else target.manifest.compression
    dataset = make_dataset(tensorflow, records, pieces, compression, form, how)
    return dataset if options is None else dataset.with_options(options)


def _content(shard: Shard) -> tuple[object, ...]:
    """What tells the bytes of a shard from others: its entry and its time, else its digest."""
    if shard.entry is None or not shard.entry.blake3:
        return hash_file(shard.storage, shard.path)
    found = [shard.storage.stat(path) for path in (shard.path, shard.entry.index) if path]
    return shard.entry, [(each.size, each.mtime_ns) for each in found if each is not None]


def _expect_sense(chosen: PipelineOptions, request: FormRequest) -> None:
    for name, value in (
        ("batch_size", chosen.batch_size),
        ("shuffle", chosen.shuffle if chosen.shuffle is not False else None),
        ("repeat", chosen.repeat if chosen.repeat is not False else None),
    ):
        if value is not None and value < 1:
            raise UsageError(
                f"`{name}` should be 1 or more, found {value}", hint=f"leave out `{name}`"
            )
    if chosen.drop_remainder and chosen.batch_size is None:
        raise UsageError(
            "`drop_remainder` needs `batch_size`", hint="`batch_size=256, drop_remainder=True`"
        )
    if request.pad_to == "longest" and chosen.batch_size is None:
        raise UsageError(
            '`pad_to="longest"` needs `batch_size`', hint='`batch_size=32, pad_to="longest"`'
        )
    if chosen.prefetch is not None and chosen.prefetch < 0:
        raise UsageError(
            f"`prefetch` should be 0 or more, found {chosen.prefetch}", hint="leave out `prefetch`"
        )
    if chosen.seed is not None and chosen.shuffle is False:
        raise UsageError("`seed` needs `shuffle`", hint="`shuffle=True, seed=1`")


def _find(
    target: TargetsLike, split: str | None, registry: RegistryLike | None, *, copy: bool
) -> SplitTarget:
    """The shards of the splits; with `copy` those of a build behind a URL as local files."""
    if not isinstance(target, str | os.PathLike | Resolved | list | tuple):
        raise UsageError(
            f"`load` reads builds, releases and files, found a {safe(type(target).__name__)}",
            hint="`tf.data.Dataset.from_generator` reads its batches: "
            f"{DOCS}/training/tensorflow.md",
        )
    found = find_records(target, split, registry, "load")
    if found.manifest is None or found.storage is None or found.storage.is_local or not copy:
        return found
    if found.files:
        return found  # single shards are read where they are
    from tfrecreg.core.storage.remote import local_copy

    # TensorFlow has other file systems than fsspec, and reads no credentials as they do.
    entries = [shard.entry for shard in found.shards if shard.entry is not None]
    storage = local_copy(found.name, found.manifest, found.storage, entries)
    shards = [replace(shard, storage=storage) for shard in found.shards]
    return found._replace(storage=storage, shards=shards)


def _draft(
    files: tuple[str, ...], *, engine: Engine | None, progress: Progress | bool
) -> tuple[str, str]:
    """A schema of files that have none, from all of their records, and its name for messages."""
    from tfrecreg.core.check.infer import infer_schema  # builds have a schema

    target = files_target(files)
    text = infer_schema(target, engine or LocalEngine(1), shown_progress(progress))
    return text, f"the schema of {target.name}"


def _entry(place: ShardPlace, offsets: RecordOffsets) -> ShardEntry:
    """What a manifest says of a shard, for one that none describes."""
    return ShardEntry(
        path=place.name,
        bytes=place.size,
        blake3="",
        sha256="",
        split=place.split,
        records=place.records,
        payload_bytes=int(offsets.lengths.clip(0).sum()),
        stream_blake3="",
        index="",
    )


def _tensorflow() -> Any:
    try:
        return import_module("tensorflow")
    except ModuleNotFoundError as error:
        if error.name != "tensorflow":
            raise _unusable(error) from error
        raise MissingExtraError("loading with tf.data", "tf") from None
    except ImportError as error:
        raise _unusable(error) from error


def _unusable(error: ImportError) -> FailureError:
    return FailureError(
        f"TensorFlow cannot be imported: {safe(str(error))}",
        hint="`python -c 'import tensorflow'` shows more",
    )

"""Loads a build or a release as a `tf.data.Dataset`. The package `tf_dataset` makes the graph of
this dataset.

No other operation imports TensorFlow, except through TFDV.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from blake3 import blake3

from tfrecreg._version import __version__
from tfrecreg.builtin.training.arrays import Fit, ImageSize, Method, expect_features
from tfrecreg.builtin.training.batches import far_files_of
from tfrecreg.builtin.training.open import each_split, find_records, per_split, places_of, select
from tfrecreg.builtin.training.splits import SplitRecords, SplitTarget, without_keys
from tfrecreg.builtin.training.tf_dataset.form import (
    ElementForm,
    FormRequest,
    PipelineOptions,
    find_form,
    with_others,
)
from tfrecreg.core.check.scan.conditions import shown_progress
from tfrecreg.core.check.scan.interface import Shard
from tfrecreg.core.plugins.bundled import OURS
from tfrecreg.core.plugins.decoders import decoders_of
from tfrecreg.core.records.hashing import hash_file
from tfrecreg.core.records.reading.shards import ShardRecords
from tfrecreg.core.registry.data import Built, TargetsLike
from tfrecreg.core.registry.find import bare_files, named_targets, target_of
from tfrecreg.core.registry.history import copy_verified
from tfrecreg.core.registry.manifest import (
    MANIFEST_NAME,
    SCHEMA_NAME,
    Manifest,
    ShardEntry,
)
from tfrecreg.core.registry.registry import RegistryLike
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.storage.interface import Readable
from tfrecreg.core.storage.local import LocalStorage, user_cache
from tfrecreg.core.storage.paths import looks_remembered
from tfrecreg.core.values.errors import FailureError, MissingExtraError, UsageError
from tfrecreg.core.values.progress import Progress
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine

if TYPE_CHECKING:
    import tensorflow as tf

    from tfrecreg.builtin.training.tf_dataset.source import Pieces
    from tfrecreg.core.storage.far_files import FarFiles


@per_split
@looks_remembered()
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
    """Load the examples of a build or a release, parsed according to its schema.

    Without further arguments the dataset has one element per example, in the order of the shards.

    Args:
        reference: ``mnist@1.0.0``, ``mnist@latest``, ``mnist`` for the build; the build or
            release itself; a folder that holds a build with its manifest; or TFRecord files of any
            tool, as for :func:`tfrecreg.data_source`. The folder of a build may be a URL. Its
            shards are then copied once into the user's cache. With `cache_limit`, they are instead
            read through a cache.
        split: an expression such as ``train``, ``train[:80%]`` or ``train+validation``. Optional if
            there is one split. A list of expressions gives a tuple of datasets. All forms of
            expressions are described in
            https://github.com/tfrecreg/tfrecreg/tree/main/docs/training.md
        registry: an open registry, or a path in a registry. None means the current folder's
            registry.
        schema: path of a schema that replaces the schema of the target. The folder of a build needs
            one if it has no `schema.pbtxt`. For files without a manifest, a schema is inferred from
            all of their records, as ``tfrecreg schema infer`` does.
        features: names of the features that are parsed. By default, all are parsed.
        decode: whether images come out as uint8 tensors of shape (height, width, channels)
            instead of their encoded bytes. Features that may hold several images, or none, stay
            encoded. If an image does not decode, the error names its record. Plugins decode other
            formats.
        channels: number of channels of decoded images: 1, 3 or 4. 0 keeps the channels of each
            image.
        image_size: height and width of decoded images. With ``fit="short-side"``, it is the length
            of the shorter side.
        fit: how images get this size. ``"stretch"`` scales each side. ``"crop"`` first cuts out the
            largest centered part with these proportions. ``"pad"`` adds black margins.
            ``"short-side"`` keeps the proportions of the image.
        method: how images are resized: a method of `tf.image.resize`.
        antialias: whether images are filtered before they are made smaller.
        tensors: for each feature with tensors from `tf.io.serialize_tensor`, their `tf.TensorSpec`
            or data type. Elements contain the decoded tensors.
        ragged: whether a feature of varying length becomes a ragged tensor instead of a sparse
            tensor.
        pad_to: length to which features of varying length are padded, with zeros or empty strings.
            They become dense tensors. Give one length for all features, a length for each, or
            ``"longest"`` to pad to the longest of the batch. A record must not have more values
            than the given length.
        as_supervised: True makes each element a pair of image and label. Two feature names make it
            a pair of these features.
        with_key: whether each element has the key of its record as the feature ``record/key``.
        with_digest: whether each element has the digest of its record as the feature
            ``record/digest``, uint8 of shape (16,). Certificates of epochs need this digest.
        batch_size: number of elements in a batch; None for single elements. All images of a batch
            must have the same size.
        drop_remainder: whether the last batch is left out if it is smaller.
        shuffle: whether each epoch is shuffled. The shards are shuffled first, then the records in
            a buffer. A number is the size of the buffer in records.
        seed: seed for shuffling.
        repeat: number of epochs. With True, the dataset is endless.
        cache: whether decoded elements are kept in memory. A path keeps them in files whose names
            begin with this path. The file names end with a digest of the content, so other records,
            arguments or versions get their own files. tfrecreg never removes them. ``"auto"`` keeps
            batches in memory if all images have one known shape and take at most 250 MiB. If
            `cache_limit` is given, `cache` is the path of a folder on this machine. Shards behind a
            URL are then read through this folder.
        cache_limit: maximum size of the folder `cache`, in bytes or as text such as ``"50GB"``.
        prefetch: number of batches or elements that are prepared ahead. If it is None, TensorFlow
            chooses the number of batches, and single elements are not prepared ahead.
        deterministic: if it is False, several shards are read at once, in any order, even without a
            shuffle.
        host: number of this host, from 0.
        hosts: number of hosts that share the records. Each host gets whole shards if `hosts`
            divides their number and there is no `where`. Otherwise the records are divided.
        options: options of `tf.data`, applied last.
        where: an SQL condition on the columns of `tfrecreg query`, such as
            ``"label = 'cat' AND width >= 224"``: read only the records of `split` that meet it.
            Needs the extra `query`.
        engine: makes the catalog of the records when `where` is first used. None makes it in this
            process.
        progress: whether a bar is shown in a notebook or a terminal while the catalog is made. A
            :class:`Progress` object is updated instead.

    Returns:
        A dataset of dictionaries from feature name to tensor. A required feature of fixed shape is
        a dense tensor of that shape. Any other feature is a sparse tensor, unless `ragged` or
        `pad_to` says otherwise. If the build was adopted and holds no Examples, its elements are
        the payloads, as scalar strings. The dataset knows its length. A record that is damaged, is
        missing or does not parse raises a `tf.errors.InvalidArgumentError`, which names its shard,
        number and key.

    Raises:
        UsageError: there is no such dataset, release, split or feature, the bytes are not on this
            machine, arguments contradict each other, or `where` is not a condition.
        RefusedError: a shard does not have the size stated in the manifest, or `where` would be
            evaluated on damaged records.
        SchemaError: the schema does not parse.
        ManifestError: a manifest, or a release's schema, was changed after it was made.
        MissingExtraError: TensorFlow, or DuckDB for `where`, is not installed.
        FailureError: TensorFlow is installed but cannot be imported.

    Example:
        >>> train = tr.load("mnist@1.0.0", "train", registry=reg, decode=True)
        >>> for batch in train.batch(32).take(1):
        ...     print(batch["image/encoded"].shape)
        (32, 28, 28, 1)
        >>> train, test = tr.load("mnist@1.0.0", ["train", "test"], registry=reg, batch_size=32)
        >>> len(train), len(test)
        (7, 2)
    """
    how = PipelineOptions(
        batch_size=batch_size,
        drop_remainder=drop_remainder,
        shuffle=shuffle,
        seed=seed,
        repeat=repeat,
        cache=os.fspath(cache) if isinstance(cache, os.PathLike) else cache,
        prefetch=prefetch,
        deterministic=deterministic,
    )
    request = FormRequest(
        features=(features,) if isinstance(features, str) else features and tuple(features),
        decode=decode,
        fit=ImageSize(
            size=image_size, fit=fit, channels=channels, method=method, antialias=antialias
        ),
        tensors=dict(tensors or {}),
        ragged=ragged,
        pad_to=pad_to,
        as_supervised=as_supervised,
        with_key=with_key,
        with_digest=with_digest,
    )
    how.expect_sense(longest=pad_to == "longest")
    far = None
    if cache_limit is not None:
        folder = None if isinstance(how.cache, bool) or cache == "auto" else how.cache
        far, how = far_files_of(folder, cache_limit), replace(how, cache=False)
    targets = named_targets(reference)  # an iterable may be read only once
    loading = _Loading(
        targets=targets,
        registry=registry,
        schema=schema,
        request=request,
        how=how,
        where=where,
        host=(host, hosts),
        options=options,
        far=far,
        engine=engine,
        progress=progress,
    )
    return each_split(targets, split, registry, loading.dataset)


@dataclass(frozen=True, kw_only=True)
class _Loading:
    """The arguments of :func:`load`, which hold for each split."""

    targets: list[str | Built]
    registry: RegistryLike | None
    schema: str | os.PathLike[str] | None
    request: FormRequest
    how: PipelineOptions
    where: str | None
    host: tuple[int, int]
    options: tf.data.Options | None
    far: FarFiles | None
    engine: Engine | None
    progress: Progress | bool
    drafts: dict[tuple[str, ...], tuple[str, str]] = field(default_factory=dict)

    def dataset(self, split: str | None) -> tf.data.Dataset:
        """The dataset of one split."""
        target = _find(self.targets, split, self.registry, copy=self.far is None)
        text = self._schema_of(target)
        parsed = None if text is None else parse_schema(*text)
        form = ElementForm() if parsed is None else find_form(parsed, self.request)
        shards, read = _shards(target, self.far)
        records = SplitRecords(shards, target.name)
        if self.request.with_key and not records.have_keys:
            raise without_keys(target.name)
        held = [each.entry.records for each in shards if each.entry is not None]
        selection = select(target, held, self.where, self.engine, self.progress)
        tensorflow = _tensorflow()
        from tfrecreg.builtin.training.tf_dataset.pipeline import make_dataset
        from tfrecreg.builtin.training.tf_dataset.source import (
            NumberedRecords,
            find_pieces,
            share_of_host,
        )

        share = share_of_host(selection, records.starts, *self.host, target.name)
        pieces: Pieces = find_pieces(share.ranges, records.starts)
        if self.where is not None or read is not None:
            every = np.arange(len(share), dtype=np.int64)
            pieces = NumberedRecords(share.numbers(every), read)
        decoders = decoders_of(target.home, {} if parsed is None else parsed.byte_pixels())
        form = with_others(tensorflow, records, form, decoders)
        how = self.how
        if isinstance(how.cache, str) and how.cache not in ("", "auto"):
            plugins = decoders.third_party_names() if form.others else []
            words = "" if text is None else text[0]
            about = tensorflow.__version__, *plugins, words, self.request, how.grouping
            how = replace(how, cache=f"{how.cache}-{_digest_of(about, shards, pieces)}")
        compression = "none" if target.manifest is None else target.manifest.compression
        dataset = make_dataset(records, pieces, len(share), compression, form, how)
        return dataset if self.options is None else dataset.with_options(self.options)

    def _schema_of(self, target: SplitTarget) -> tuple[str, str] | None:
        """The text and the origin of the schema; None if records are read as payloads."""
        if target.is_raw(self.schema):
            if self.request != FormRequest():
                raise UsageError(
                    "the records are not Examples, so they are read as payloads: arguments about "
                    "features, images and keys do not apply"
                )
            return None
        found = target.find_schema(self.schema)
        if found is None and target.manifest is None:
            found = self._draft(target.files)
        expect_features((), found)
        return found

    def _draft(self, files: tuple[str, ...]) -> tuple[str, str]:
        """The schema of files, drafted once for all splits, from all of their records."""
        if files not in self.drafts:
            from tfrecreg.core.check.infer import infer_schema  # builds have a schema

            target = target_of(bare_files(files))
            engine = self.engine or LocalEngine(1)
            text, _ = infer_schema(target, engine, shown_progress(self.progress))
            self.drafts[files] = text, f"the schema of {target.name}"
        return self.drafts[files]


def _shards(
    target: SplitTarget, far: FarFiles | None
) -> tuple[Sequence[Shard], ShardRecords | None]:
    """The shards, each with a manifest entry, and the reader for shards behind URLs."""
    if target.storage is not None and target.storage.local_path() is not None:
        return target.shards, None
    places, read = places_of(target, far)
    shards = []
    for at, (shard, place) in enumerate(zip(target.shards, places, strict=True)):
        if shard.entry is None:
            # A shard without a manifest gets the entry that a manifest would have.
            entry = ShardEntry(
                path=place.name,
                bytes=place.size,
                blake3="",
                sha256="",
                split=place.split,
                records=place.records,
                payload_bytes=int(read.located(at).lengths.clip(0).sum()),
                stream_blake3="",
                index="",
            )
            shard = replace(shard, entry=entry)
        shards.append(shard)
    return shards, read


def _digest_of(about: object, shards: Sequence[Shard], pieces: Pieces) -> str:
    """A digest of everything that the cached elements depend on: our code, the bytes of the shards,
    the chosen records, and the other arguments.
    """
    from tfrecreg.core.plugins.code_digest import code_of

    contents: list[object] = []
    for shard in shards:
        if shard.entry is None or not shard.entry.blake3:
            contents.append(hash_file(shard.storage, shard.path)[:2])
            continue
        found = [shard.storage.stat(path) for path in (shard.path, shard.entry.index) if path]
        stamps = [(each.size, each.mtime_ns) for each in found if each is not None]
        contents.append((shard.entry, stamps))
    numbers = getattr(pieces, "numbers", None)
    which = pieces if numbers is None else blake3(numbers.tobytes()).hexdigest()
    every = __version__, code_of(OURS), about, contents, which
    return blake3(repr(every).encode("utf-8", "surrogateescape")).hexdigest(8)


def _find(
    target: TargetsLike, split: str | None, registry: RegistryLike | None, *, copy: bool
) -> SplitTarget:
    """The shards of the splits. If `copy` is True and the build is behind a URL, its shards are
    copied first."""
    found = find_records(target, split, registry)
    if found.manifest is None or found.storage is None or found.files or not copy:
        return found  # single shards are read where they are
    if found.storage.local_path() is not None:
        return found
    # TensorFlow has other file systems than fsspec, and reads credentials differently.
    entries = [shard.entry for shard in found.shards if shard.entry is not None]
    storage = _local_copy(found.name, found.manifest, found.storage, entries)
    shards = [replace(shard, storage=storage) for shard in found.shards]
    return found._replace(storage=storage, shards=shards)


def _local_copy(
    name: str, manifest: Manifest, remote: Readable, shards: Sequence[ShardEntry]
) -> LocalStorage:
    """Copy the shards, their indexes and the schema from the URL of a build.

    The copy is a folder in the user's cache. The folder's name is a digest of the manifest's
    file. A file appears in the folder only after its digest has matched the manifest. The file is
    then not fetched again. tfrecreg never removes the files, but you may delete the folder at any
    time.
    """
    cache = user_cache()
    if cache is None:
        raise UsageError(
            f"`{name}` is first copied to a cache, which needs `HOME` or `XDG_CACHE_HOME`"
        )
    folder = blake3(remote.read(MANIFEST_NAME)).hexdigest(16)
    local = cache.below(f"tfrecreg/remote/{folder}")
    paths = [path for each in shards for path in (each.path, each.index)]
    entries = manifest.entries
    for path in (*paths, SCHEMA_NAME):
        if path in entries:
            copy_verified(remote, local, entries[path])
    return local


def _tensorflow() -> Any:
    try:
        return import_module("tensorflow")
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "tensorflow":
            raise MissingExtraError("loading with tf.data", "tf") from None
        raise FailureError(f"TensorFlow cannot be imported: {error}") from error

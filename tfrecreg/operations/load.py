"""A release as a `tf.data.Dataset`. The only home of TensorFlow among the operations."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tfrecreg.errors import FailureError, MissingExtraError, UsageError
from tfrecreg.example.kinds import PayloadKind
from tfrecreg.manifest.adopted import adopted_kind
from tfrecreg.operations.load_batches import read_records
from tfrecreg.operations.load_images import decode_images
from tfrecreg.operations.load_records import SplitRecords
from tfrecreg.registry import Resolved, open_registry, resolve
from tfrecreg.registry.absence import absent_schema
from tfrecreg.schema import parse_schema, tf_feature_spec
from tfrecreg.suggest import did_you_mean, listed
from tfrecreg.text import safe

if TYPE_CHECKING:
    import tensorflow as tf

__all__ = ["load"]


def load(
    reference: str,
    split: str | None = None,
    *,
    registry: str | os.PathLike[str] | None = None,
    decode: bool = False,
) -> tf.data.Dataset:
    """The examples of a build or a release, parsed by its schema.

    Args:
        reference: ``mnist@1.0.0``, ``mnist@latest``, ``mnist`` for the build.
        split: which split; may be left out where there is only one.
        registry: the registry's folder; None to look for it from the current folder upwards.
        decode: whether pictures come out as uint8 tensors of shape (height, width, channels)
            instead of their encoded bytes. Features that may hold several pictures, or none, stay
            as they are. The error of one that does not decode names its record.

    Returns:
        A dataset of dictionaries, feature name to tensor, one element an example, in the order
        of the shards. A required feature of fixed shape is a dense tensor of that shape,
        everything else a sparse one. The elements of a build that was adopted and holds no
        Examples are the payloads, as scalar strings. It knows its length. Records that are
        damaged, that do not parse, or that are not there raise a
        `tf.errors.InvalidArgumentError` that names shard, record and key.

    Raises:
        UsageError: no such dataset, release or split, or its bytes are not on this machine.
        RefusedError: a shard does not have the size that the manifest says.
        ManifestError: a manifest, or a release's schema, was changed after it was made.
        MissingExtraError: TensorFlow is not installed.
        FailureError: TensorFlow is installed and does not work.
    """
    resolved = resolve(open_registry(registry), reference)
    storage = resolved.storage()
    chosen = _split(resolved, split)
    shards = [each for each in resolved.manifest.shards if each.split == chosen]
    records = SplitRecords(storage, shards, resolved.name)
    compression = resolved.manifest.compression
    if adopted_kind(resolved.manifest) is not PayloadKind.EXAMPLE:
        records.expect_whole()
        return read_records(_tensorflow(), records, compression, lambda payloads: payloads)
    text = resolved.schema
    if text is None:
        raise absent_schema(resolved.registry, resolved.dataset)
    schema = parse_schema(text, resolved.schema_path)
    records.expect_whole()
    tf = _tensorflow()
    spec = tf_feature_spec(schema)
    dataset = read_records(
        tf, records, compression, lambda payloads: tf.io.parse_example(payloads, spec)
    )
    pictures = schema.images()
    if decode and pictures:
        dataset = decode_images(tf, dataset, pictures, records)
    return dataset


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


def _split(resolved: Resolved, split: str | None) -> str:
    names = [each.name for each in resolved.manifest.splits]
    if split is None and len(names) == 1:
        return names[0]
    if split is None:
        raise UsageError(
            f"`{resolved.name}` has the splits {listed(names)}: name one",
            hint=f"tfrecreg.load({resolved.name!r}, split={names[0]!r})",
        )
    if split not in names:
        close = did_you_mean(split, names)
        raise UsageError(
            f"`{resolved.name}` has no split `{safe(split)}`{close}",
            hint=f"there is {listed(names)}",
        )
    return split

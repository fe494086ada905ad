"""A release as a `tf.data.Dataset`. The only home of TensorFlow among the operations."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tfrecreg.errors import FailureError, MissingExtraError, UsageError
from tfrecreg.example import decode_or_none
from tfrecreg.example.kinds import PayloadKind
from tfrecreg.images import ImageError, read_header
from tfrecreg.images.decodable import why_undecodable
from tfrecreg.manifest.adopted import adopted_kind
from tfrecreg.operations.load_records import SplitRecords
from tfrecreg.operations.targets import resolve_in
from tfrecreg.registry import RegistryLike, Resolved
from tfrecreg.registry.absence import absent_schema
from tfrecreg.schema import parse_schema, tf_feature_spec
from tfrecreg.suggest import did_you_mean, listed
from tfrecreg.text import safe

if TYPE_CHECKING:
    import tensorflow as tf


def load(
    reference: str | Resolved,
    split: str | None = None,
    *,
    registry: RegistryLike | None = None,
    decode: bool = False,
) -> tf.data.Dataset:
    """The examples of a build or a release, parsed by its schema.

    Args:
        reference: ``mnist@1.0.0``, ``mnist@latest``, ``mnist`` for the build; or the build or
            release itself.
        split: which split; may be left out where there is only one.
        registry: an open registry or a path in one; None for that of the current folder.
        decode: whether images come out as uint8 tensors of shape (height, width, channels)
            instead of their encoded bytes. Features that may hold several images, or none, stay
            encoded. The error of one that does not decode names its record.

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
    resolved = resolve_in(registry, reference)
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
        raise absent_schema(resolved.dataset)
    schema = parse_schema(text, resolved.schema_path)
    records.expect_whole()
    tf = _tensorflow()
    spec = tf_feature_spec(schema)
    dataset = read_records(
        tf, records, compression, lambda payloads: tf.io.parse_example(payloads, spec)
    )
    images = schema.images()
    if decode and images:
        dataset = decode_images(tf, dataset, images, records)
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
            hint=f"available: {listed(names)}",
        )
    return split


_BATCH = 256
"""Number of examples parsed at once: parsing one at a time costs about ten times as much."""


def read_records(
    tensorflow: Any,
    records: SplitRecords,
    compression: str,
    parse: Callable[[Any], Any],
) -> tf.data.Dataset:
    """The result of `parse` for every record, in order.

    Args:
        tensorflow: the module.
        records: of the split.
        compression: of its shards, as a manifest says it.
        parse: of a batch of payloads, a tensor of strings.
    """
    data = tensorflow.data
    kind = "GZIP" if compression == "gzip" else ""

    def of_shard(pattern: Any, start: Any, stop: Any) -> tf.data.Dataset:
        # A file that was removed meanwhile raises no error but gives no file: errors are skipped
        # below, and TensorFlow would try to open it for ever.
        paths = tensorflow.io.matching_files(pattern)
        payloads = data.TFRecordDataset(paths, compression_type=kind).ignore_errors()
        firsts = data.Dataset.range(start, tensorflow.int64.max, _BATCH)
        stops = data.Dataset.from_tensors(stop).repeat()
        return data.Dataset.zip((firsts, stops, payloads.batch(_BATCH)))

    def parsed(first: Any, stop: Any, payloads: Any) -> tuple[Any, Any, Any, Any]:
        return first, first + tensorflow.size(payloads, tensorflow.int64), stop, parse(payloads)

    def why_not(expected: Any, first: Any, stop: Any) -> str:
        if first == expected:
            return records.why_more(int(stop) - 1)
        return records.why_not(int(expected), problem)

    def problem(payload: bytes) -> str:
        try:
            parse(tensorflow.constant([payload]))
        except (tensorflow.errors.OpError, UnicodeError) as error:
            if decode_or_none(payload) is None:
                return "it is not a `tf.train.Example`"
            return safe(re.sub(r"\{\{.*\}\} |Name: [^,]*, ", "", str(error)), limit=500)
        return ""

    def followed(expected: Any, element: tuple[Any, Any, Any, Any]) -> tuple[Any, Any]:
        first, end, stop, values = element
        check = tensorflow.cond(
            tensorflow.logical_and(tensorflow.equal(first, expected), end <= stop),
            tensorflow.no_op,
            lambda: _stop(tensorflow, why_not, expected, first, stop),
        )
        with tensorflow.control_dependencies([check]):
            return tensorflow.identity(end), values

    def numbers(values: Sequence[int]) -> Any:
        return tensorflow.constant(list(values), tensorflow.int64)

    shards = data.Dataset.from_tensor_slices(
        (
            tensorflow.constant([_literal(path) for path in records.paths], tensorflow.string),
            numbers(records.starts[:-1]),
            numbers(records.starts[1:]),
        )
    )
    # What comes after the last record, so that its absence shows.
    end = data.Dataset.from_tensors(
        (*numbers([records.total] * 2), tensorflow.constant([], tensorflow.string))
    )
    numbered = (
        shards.flat_map(_plain(tensorflow, of_shard))
        .concatenate(end)
        # In order, whatever the options of the dataset say: the numbers have to follow each other.
        .map(_plain(tensorflow, parsed), num_parallel_calls=data.AUTOTUNE, deterministic=True)
        .ignore_errors()
        .scan(tensorflow.constant(0, tensorflow.int64), _plain(tensorflow, followed))
    )
    options = data.Options()
    # Of several workers each would read some of the files, and miss the records of the others.
    options.experimental_distribute.auto_shard_policy = data.experimental.AutoShardPolicy.DATA
    # The one call of Python has no state that a checkpoint of an iterator would have to hold.
    options.experimental_external_state_policy = data.experimental.ExternalStatePolicy.IGNORE
    total = data.experimental.assert_cardinality(records.total)
    return numbered.unbatch().apply(total).with_options(options)


def _stop(tensorflow: Any, why: Callable[[Any, Any, Any], str], *numbers: Any) -> Any:
    problem = tensorflow.py_function(why, numbers, tensorflow.string)
    # An exception of Python would come with the lines of TensorFlow that it went through.
    return tensorflow.debugging.Assert(tensorflow.constant(value=False), [problem])


def _plain(tensorflow: Any, function: Callable[..., Any]) -> Any:
    """Nothing here needs AutoGraph, which warns of functions whose source it does not find."""
    return tensorflow.autograph.experimental.do_not_convert(function)


def _literal(path: bytes) -> bytes:
    """A pattern that matches this path only."""
    return re.sub(rb"([*?\[\\])", rb"\\\1", path)


_AROUND = 16
"""Zeros before and behind an image, so that its ends can be looked at however short it is."""
_WHOLE = ((b"\xff\xd8\xff", b"\xff\xd9"), (b"\x89PNG\r\n\x1a\n", b"IEND\xaeB`\x82"))
"""First and last bytes of a complete JPEG and PNG."""


def decode_images(
    tensorflow: Any,
    dataset: tf.data.Dataset,
    features: Sequence[str],
    records: SplitRecords,
) -> tf.data.Dataset:
    """Decode the images of a split.

    Args:
        tensorflow: the module.
        dataset: its examples, in the order of the shards.
        features: those that hold images.
        records: of the split, which know their names.
    """

    def decoded(number: Any, example: Mapping[str, Any]) -> dict[str, Any]:
        return {
            feature: _decoded(tensorflow, feature, value, number, records)
            if feature in features and _is_single(tensorflow, value)
            else value
            for feature, value in example.items()
        }

    return dataset.enumerate().map(
        # Nothing here needs AutoGraph, which warns of every function whose source it does not find.
        tensorflow.autograph.experimental.do_not_convert(decoded),
        num_parallel_calls=tensorflow.data.AUTOTUNE,
    )


def _is_single(tensorflow: Any, value: Any) -> bool:
    """Several images have no one shape, and a sparse tensor may hold any number of them."""
    return isinstance(value, tensorflow.Tensor) and value.shape.num_elements() == 1


def _decoded(tensorflow: Any, feature: str, value: Any, number: Any, records: SplitRecords) -> Any:
    data = tensorflow.reshape(value, [])

    def attempt(data: Any, number: Any) -> tuple[Any, str]:
        try:
            return tensorflow.io.decode_image(data, expand_animations=False), ""
        except tensorflow.errors.InvalidArgumentError as error:
            reason = _reason(data.numpy()) or safe(error.message)
            place, key = records.named(int(number)), records.key(int(number))
            problem = f"`{safe(feature)}` of {place} does not decode: {reason}{key}"
            return tensorflow.zeros((1, 1, 1), tensorflow.uint8), problem

    def patiently() -> Any:
        types = [tensorflow.uint8, tensorflow.string]
        image, problem = tensorflow.py_function(attempt, [data, number], types)
        # An exception of Python would come with the lines of TensorFlow that it went through.
        sound = tensorflow.debugging.Assert(tensorflow.equal(problem, ""), [problem])
        with tensorflow.control_dependencies([sound]):
            return tensorflow.identity(image)

    image = tensorflow.cond(
        _is_whole(tensorflow, data),
        lambda: tensorflow.io.decode_image(data, expand_animations=False),
        patiently,
    )
    image.set_shape((None, None, None))
    return image


def _is_whole(tensorflow: Any, data: Any) -> Any:
    strings = tensorflow.strings
    around = b"\0" * _AROUND
    padded = strings.join([around, data, around])
    found = tensorflow.constant(False)
    for begin, end in _WHOLE:
        begins = strings.substr(padded, _AROUND, len(begin)) == begin
        ends = strings.substr(padded, -_AROUND - len(end), len(end)) == end
        found = tensorflow.logical_or(found, tensorflow.logical_and(begins, ends))
    return found


def _reason(data: bytes) -> str | None:
    """Why TensorFlow refuses it, where its header tells."""
    try:
        return why_undecodable(data, read_header(data))
    except ImageError as error:
        return error.detail

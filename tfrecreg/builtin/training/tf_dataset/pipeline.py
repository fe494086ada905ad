"""The pipeline of a dataset: reads payloads, shuffles and batches them, parses and decodes batches.

For large records, the numbers are shuffled and batched before the records are read. With both a
cache and a shuffle, decoded elements are cached and then shuffled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import tensorflow as tf

from tfrecreg.builtin.training.splits import SplitRecords
from tfrecreg.builtin.training.tf_dataset.elements import (
    ElementReader,
    resized,
    why_no_image,
    without_nodes,
)
from tfrecreg.builtin.training.tf_dataset.form import ElementForm, PipelineOptions
from tfrecreg.builtin.training.tf_dataset.source import (
    NumberedRecords,
    Pieces,
    Turns,
    checked_map,
    describe_marks,
    order_numbers,
    plain,
    read_numbered,
    read_payloads,
)
from tfrecreg.core.values.text import safe

_AROUND = 16
"""This many zeros are added at both ends of an image, so that it is never too short to compare."""
_WHOLE = ((b"\xff\xd8\xff", b"\xff\xd9"), (b"\x89PNG\r\n\x1a\n", b"IEND\xaeB`\x82"))
"""First and last bytes of a complete JPEG and PNG."""


def _decoded(records: SplitRecords, form: ElementForm, name: str, number: Any, value: Any) -> Any:
    data = tf.reshape(value, [])
    fit, sides = form.request.fit, form.images[name]

    def decode(data: Any) -> Any:
        return tf.io.decode_image(data, channels=fit.channels, expand_animations=False)

    def attempt(data: Any, number: Any) -> tuple[Any, str]:
        try:
            return tf.ensure_shape(decode(data), sides), ""
        except tf.errors.InvalidArgumentError as error:
            reason = why_no_image(data.numpy()) or without_nodes(error.message)
            place, key = records.named(int(number)), records.key(int(number))
            problem = f"`{safe(name)}` of {place} does not decode: {reason}{key}"
            return tf.zeros((1, 1, 1), tf.uint8), problem

    def patiently() -> Any:
        types = [tf.uint8, tf.string]
        image, problem = tf.py_function(attempt, [data, number], types)
        # A Python exception would show lines of TensorFlow in between.
        sound = tf.debugging.Assert(tf.equal(problem, ""), [problem])
        with tf.control_dependencies([sound]):
            return tf.identity(image)

    image = tf.cond(_is_whole(data), lambda: decode(data), patiently)
    found = tf.shape(image)
    fits = [found[axis] == side for axis, side in enumerate(sides) if side is not None]
    if fits:
        image = tf.cond(tf.reduce_all(fits), lambda: image, patiently)
    return resized(fit, tf.ensure_shape(image, sides))


def _is_whole(data: Any) -> Any:
    strings = tf.strings
    around = b"\0" * _AROUND
    padded = strings.join([around, data, around])
    found = tf.constant(False)
    for begin, end in _WHOLE:
        begins = strings.substr(padded, _AROUND, len(begin)) == begin
        ends = strings.substr(padded, -_AROUND - len(end), len(end)) == end
        found = tf.logical_or(found, tf.logical_and(begins, ends))
    return found


_KEPT_BYTES = 250 << 20
"""Decoded elements of up to this many bytes are cached by default, as in TFDS."""
_BUFFER_BYTES = 256 << 20
_BUFFER_RECORDS = 100_000
_ALONE_BYTES = 1 << 14
"""If records have at least this mean size, their numbers are shuffled before they are read."""
_DECODED_AT_ONCE = 32
"""Number of images decoded together if there is no batch size and all have one shape."""
_AUTO = -1


def make_dataset(
    records: SplitRecords,
    pieces: Pieces,
    total: int,
    compression: str,
    form: ElementForm,
    options: PipelineOptions,
) -> tf.data.Dataset:
    """The dataset of :func:`tfrecreg.load`, with `total` records. It knows its length."""
    data = tf.data
    if options.cache == "auto":
        kept_bytes = total * form.kept_bytes(records.mean_bytes)
        is_kept = options.batch_size is not None and kept_bytes <= _KEPT_BYTES
        options = replace(options, cache=is_kept)
    size, rest = options.batch_size, options.drop_remainder
    # Decoded elements are cached before the shuffle, so that each epoch has another order.
    is_late = bool(options.cache) and bool(options.shuffle)
    inner = None if is_late else size
    # A map over single elements makes ragged tensors dense, and these could not be batched again.
    is_dense = form.ragged <= set(form.padded)
    apart = inner is None and not form.stacks and not form.tensors and not form.others and is_dense
    if inner is None and (form.images or form.tensors or form.others) and not apart:
        # Images before a damaged image are still delivered, and their shapes may differ.
        inner = _DECODED_AT_ONCE if form.stacks else 1
    parsed = replace(form, images={}) if apart else form
    reader = ElementReader(records, parsed, single=inner == 1)
    buffer = int(options.shuffle)
    if options.shuffle is True:
        fits = _BUFFER_BYTES // max(1, records.mean_bytes)
        buffer = max(1, min(total, _BUFFER_RECORDS, fits))
    early = 0 if is_late else buffer
    groups = _groups(records, pieces, compression, options, early, inner)

    def numbered(numbers: Any, payloads: Any) -> Any:
        return numbers, reader(numbers, payloads)

    def decoded(number: Any, features: Any) -> Any:
        images = {
            name: _decoded(records, form, name, number, features[name]) for name in form.images
        }
        return reader.finish({**features, **images})

    function = numbered if apart else reader
    found = checked_map(groups, function, _explainer(records, reader))
    if size is None or is_late:
        found = found.filter(plain(lambda count, _: count > 0))
        # Before elements are separated: a map over single elements makes ragged tensors dense,
        # and these could not be batched again.
        found = found.map(plain(lambda _, each: each if apart else reader.finish(each)))
        dataset = found.unbatch()
        if apart:
            dataset = dataset.map(
                plain(decoded), num_parallel_calls=data.AUTOTUNE, deterministic=True
            )
        dataset = dataset.apply(data.experimental.assert_cardinality(total))
    else:
        wanted = size if rest else 1
        found = found.filter(plain(lambda count, _: count >= wanted))
        shaped = plain(lambda _, each: reader.finish(_with_size(each, size, rest)))
        found = found.map(shaped)
        batches = total // size if rest else -(-total // size)
        dataset = found.apply(data.experimental.assert_cardinality(batches))
    if is_late:
        dataset = _kept(dataset, options, buffer, total)
    if form.request.pad_to == "longest":
        dataset = dataset.map(plain(reader.pad_longest))
    if options.cache and not is_late:
        dataset = dataset.cache(options.cache if isinstance(options.cache, str) else "")
    if options.repeat is not False:
        dataset = dataset.repeat(None if options.repeat is True else options.repeat)
    ahead = (_AUTO if size is not None else 0) if options.prefetch is None else options.prefetch
    if ahead:
        dataset = dataset.prefetch(ahead)
    return dataset.with_options(_options())


def _groups(
    records: SplitRecords,
    pieces: Pieces,
    compression: str,
    options: PipelineOptions,
    buffer: int,
    inner: int | None,
) -> Any:
    """Batches of numbers and payloads. They are shuffled if `buffer` is not 0."""
    at_once = inner or _DECODED_AT_ONCE
    mixed = bool(options.shuffle) or not options.deterministic
    turns = Turns(mixed, bool(buffer), options.seed, options.deterministic)
    is_large = compression == "none" and records.mean_bytes >= _ALONE_BYTES
    if is_large and records.have_keys and not isinstance(pieces, NumberedRecords):
        numbers = order_numbers(records, pieces, turns)
        numbers = (_shuffled(numbers, buffer, options) if buffer else numbers).batch(at_once)
        return read_numbered(records, numbers, at_once, turns)
    groups = read_payloads(records, pieces, compression, turns)
    if buffer:
        return _shuffled(groups.unbatch(), buffer, options).batch(at_once)
    return groups if inner is None else groups.unbatch().batch(inner)


def _shuffled(dataset: Any, buffer: int, options: PipelineOptions) -> Any:
    return dataset.shuffle(buffer, options.seed, reshuffle_each_iteration=True)


def _kept(elements: Any, options: PipelineOptions, buffer: int, total: int) -> Any:
    """Cache the elements, then shuffle them, and batch them if there is a batch size."""
    size, rest = options.batch_size, options.drop_remainder
    is_dense = all(
        isinstance(each, tf.TensorSpec) and each.shape.is_fully_defined()
        for each in tf.nest.flatten(elements.element_spec)
    )
    if options.cache is True and size is not None and is_dense:
        order = _shuffled(tf.data.Dataset.range(total), buffer, options)
        return _gathered(elements, total, order.batch(size, drop_remainder=rest))
    cached = elements.cache(options.cache if isinstance(options.cache, str) else "")
    found = _shuffled(cached, buffer, options)
    return found if size is None else found.batch(size, drop_remainder=rest)


def _gathered(elements: Any, total: int, order: Any) -> Any:
    """Keep the elements in one tensor per feature, and make batches of them.

    One gather per batch is far faster than handing over the elements one by one.
    """
    data = tf.data
    # The shuffle asks for a second element, so the cache sees the end and counts as filled.
    whole = elements.batch(max(1, total)).cache().shuffle(2, seed=0)

    def endless(*parts: Any) -> Any:
        return data.Dataset.from_tensors(parts if len(parts) > 1 else parts[0]).repeat()

    def gathered(numbers: Any, kept: Any) -> Any:
        return tf.nest.map_structure(lambda each: tf.gather(each, numbers), kept)

    pairs = data.Dataset.zip((order, whole.flat_map(plain(endless))))
    return pairs.map(plain(gathered), num_parallel_calls=data.AUTOTUNE, deterministic=True).apply(
        data.experimental.assert_cardinality(len(order))
    )


def _with_size(features: dict[str, Any], size: int, rest: bool) -> Any:
    """The same features, with the batch size in their shapes if all batches have that size."""
    if not rest:
        return features
    for value in features.values():
        if isinstance(value, tf.Tensor):
            value.set_shape([size, *value.shape[1:]])
    return features


def _explainer(records: SplitRecords, reader: ElementReader) -> Callable[[list[int], bool], str]:
    def why(numbers: list[int], is_lost: bool) -> str:
        described = describe_marks(records, numbers, reader.fault)
        if described or not is_lost:
            return described
        sound: list[bytes] = []

        def look(payload: bytes) -> tuple[str, str] | None:
            fault = reader.fault(payload)
            if fault is None:
                sound.append(payload)
            return fault

        described = records.why_lost(numbers, look)
        if len(sound) < len(numbers):
            return described
        return reader.missing_key(numbers) or reader.why_apart(sound) or described

    return why


def _options() -> Any:
    options = tf.data.Options()
    # By files, each of several workers would miss the records of the files that it does not read.
    policy = tf.data.experimental.AutoShardPolicy.DATA
    options.experimental_distribute.auto_shard_policy = policy
    # These Python functions have no state that an iterator's checkpoint would need.
    state = tf.data.experimental.ExternalStatePolicy.IGNORE
    options.experimental_external_state_policy = state
    return options

"""All of a pipeline in one dataset, in the order that costs least.

Read, shuffle payloads, batch, parse and decode by the batch. Of large records the numbers are
shuffled and batched, and then they are read: no payload waits in a buffer. With both a cache and a
shuffle, decoded elements are cached and then shuffled, which takes memory but decodes once.

An error of an image names its record. To find out, only images that do not begin and end as a
whole JPEG or PNG, or that have not the sides or channels they should, are decoded by a call of
Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tfrecreg.builtin.training.elements import RecordRun
from tfrecreg.builtin.training.tf_dataset.chosen import NumberedRecords, checked_map, read_numbered
from tfrecreg.builtin.training.tf_dataset.elements import ElementReader, why_no_image, without_nodes
from tfrecreg.builtin.training.tf_dataset.form import ElementForm
from tfrecreg.builtin.training.tf_dataset.plain import plain
from tfrecreg.builtin.training.tf_dataset.source import describe_marks, order_numbers, read_payloads
from tfrecreg.core.registry.shardset.load_records import PayloadFault, SplitRecords
from tfrecreg.core.values.text import safe

if TYPE_CHECKING:
    import tensorflow as tf

_AROUND = 16
"""Zeros before and behind an image, so that reading its ends works for any length."""
_WHOLE = ((b"\xff\xd8\xff", b"\xff\xd9"), (b"\x89PNG\r\n\x1a\n", b"IEND\xaeB`\x82"))
"""First and last bytes of a complete JPEG and PNG."""


def decode_single(
    tensorflow: Any, records: SplitRecords, form: ElementForm, number: Any, features: dict[str, Any]
) -> dict[str, Any]:
    """The features of one element, with its images decoded."""
    decoded = dict(features)
    for name in form.images:
        decoded[name] = _decoded(tensorflow, records, form, name, number, features[name])
    return decoded


def _decoded(
    tensorflow: Any, records: SplitRecords, form: ElementForm, name: str, number: Any, value: Any
) -> Any:
    data = tensorflow.reshape(value, [])
    sides = form.images[name]

    def decode(data: Any) -> Any:
        return tensorflow.io.decode_image(data, channels=form.channels, expand_animations=False)

    def attempt(data: Any, number: Any) -> tuple[Any, str]:
        try:
            return tensorflow.ensure_shape(decode(data), sides), ""
        except tensorflow.errors.InvalidArgumentError as error:
            reason = why_no_image(data.numpy()) or without_nodes(error.message)
            place, key = records.named(int(number)), records.key(int(number))
            problem = f"`{safe(name)}` of {place} does not decode: {reason}{key}"
            return tensorflow.zeros((1, 1, 1), tensorflow.uint8), problem

    def patiently() -> Any:
        types = [tensorflow.uint8, tensorflow.string]
        image, problem = tensorflow.py_function(attempt, [data, number], types)
        # A Python exception would show TensorFlow's lines in between.
        sound = tensorflow.debugging.Assert(tensorflow.equal(problem, ""), [problem])
        with tensorflow.control_dependencies([sound]):
            return tensorflow.identity(image)

    image = tensorflow.cond(_is_whole(tensorflow, data), lambda: decode(data), patiently)
    found = tensorflow.shape(image)
    fits = [found[axis] == side for axis, side in enumerate(sides) if side is not None]
    if fits:
        image = tensorflow.cond(tensorflow.reduce_all(fits), lambda: image, patiently)
    return form.fit.applied(tensorflow, tensorflow.ensure_shape(image, sides))


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


_KEPT_BYTES = 250 << 20
"""Decoded elements that are kept without being asked for: as much as TFDS keeps."""
_BUFFER_BYTES = 256 << 20
_BUFFER_RECORDS = 100_000
_ALONE_BYTES = 1 << 14
"""Mean bytes of records whose numbers are ordered, and which are read when they are due."""
_DECODED_AT_ONCE = 32
"""Number of images decoded together if there is no batch size and all have one shape."""
_AUTO = -1


@dataclass(frozen=True, kw_only=True)
class PipelineOptions:
    """The arguments of :func:`tfrecreg.load` about the order and the grouping of elements."""

    batch_size: int | None
    drop_remainder: bool
    shuffle: bool | int
    seed: int | None
    repeat: bool | int
    cache: bool | str
    """``"auto"`` where the elements decide; another text is a prefix of files."""
    prefetch: int | None
    deterministic: bool

    @property
    def grouping(self) -> tuple[object, ...]:
        """What decides which elements a cache keeps, in which order."""
        return self.batch_size, self.drop_remainder, bool(self.shuffle), self.deterministic


def make_dataset(
    tensorflow: Any,
    records: SplitRecords,
    pieces: Sequence[RecordRun] | NumberedRecords,
    compression: str,
    form: ElementForm,
    options: PipelineOptions,
) -> tf.data.Dataset:
    """The dataset of :func:`tfrecreg.load`. It knows its length."""
    data = tensorflow.data
    if isinstance(pieces, NumberedRecords):
        total = len(pieces.numbers)
    else:
        total = sum(each.records for each in pieces)
    if options.cache == "auto":
        kept_bytes = total * form.kept_bytes(records.mean_bytes)
        is_kept = options.batch_size is not None and kept_bytes <= _KEPT_BYTES
        options = replace(options, cache=is_kept)
    size, rest = options.batch_size, options.drop_remainder
    # Decoded elements are cached before they are shuffled, so that each epoch has another order.
    is_late = bool(options.cache) and bool(options.shuffle)

    def shuffled(dataset: Any) -> Any:
        if options.shuffle is True:
            fits = _BUFFER_BYTES // max(1, records.mean_bytes)
            buffer = max(1, min(total, _BUFFER_RECORDS, fits))
        else:
            buffer = int(options.shuffle)
        return dataset.shuffle(buffer, options.seed, reshuffle_each_iteration=True)

    inner = None if is_late else size
    # A map over single elements makes ragged tensors dense, which could not be batched again.
    is_dense = form.ragged <= set(form.padded)
    apart = inner is None and not form.stacks and not form.tensors and not form.others and is_dense
    if inner is None and (form.images or form.tensors or form.others) and not apart:
        # Images before one that does not decode still come, and their shapes may differ.
        inner = _DECODED_AT_ONCE if form.stacks else 1
    parsed = replace(form, images={}) if apart else form
    reader = ElementReader(tensorflow, records, parsed, single=inner == 1)
    is_early = bool(options.shuffle) and not is_late
    at_once = inner or _DECODED_AT_ONCE
    ordering: dict[str, Any] = {
        "mixed": bool(options.shuffle) or not options.deterministic,
        "shuffle": is_early,
        "seed": options.seed,
        "deterministic": options.deterministic,
    }
    is_large = compression == "none" and records.mean_bytes >= _ALONE_BYTES
    if is_large and records.have_keys and not isinstance(pieces, NumberedRecords):
        numbers = order_numbers(tensorflow, records, pieces, **ordering)
        numbers = (shuffled(numbers) if is_early else numbers).batch(at_once)
        ordered = options.deterministic
        groups = read_numbered(tensorflow, records, numbers, at_once, deterministic=ordered)
    else:
        groups = read_payloads(tensorflow, records, pieces, compression, **ordering)
        if is_early:
            groups = shuffled(groups.unbatch()).batch(at_once)
        elif inner is not None:
            groups = groups.unbatch().batch(inner)

    def numbered(numbers: Any, payloads: Any) -> Any:
        return numbers, reader(numbers, payloads)

    def decoded(number: Any, features: Any) -> Any:
        return reader.finish(decode_single(tensorflow, records, form, number, features))

    function = numbered if apart else reader
    found = checked_map(tensorflow, groups, function, _explainer(records, reader))
    if size is None or is_late:
        found = found.filter(plain(tensorflow, lambda count, _: count > 0))
        # Before the elements are single: a map over those makes ragged tensors dense, which
        # could not be batched again.
        found = found.map(plain(tensorflow, lambda _, each: each if apart else reader.finish(each)))
        dataset = found.unbatch()
        if apart:
            dataset = dataset.map(
                plain(tensorflow, decoded), num_parallel_calls=data.AUTOTUNE, deterministic=True
            )
        dataset = dataset.apply(data.experimental.assert_cardinality(total))
    else:
        wanted = size if rest else 1
        found = found.filter(plain(tensorflow, lambda count, _: count >= wanted))
        shaped = plain(
            tensorflow, lambda _, each: reader.finish(_with_size(tensorflow, each, size, rest))
        )
        found = found.map(shaped)
        batches = total // size if rest else -(-total // size)
        dataset = found.apply(data.experimental.assert_cardinality(batches))
    if is_late and options.cache is True and size is not None and _is_dense(tensorflow, dataset):
        order = shuffled(data.Dataset.range(total)).batch(size, drop_remainder=rest)
        dataset = _gathered(tensorflow, dataset, total, order)
    elif is_late:
        dataset = shuffled(_cached(dataset, options.cache))
        if size is not None:
            dataset = dataset.batch(size, drop_remainder=rest)
    if form.longest:
        dataset = dataset.map(plain(tensorflow, reader.pad_longest))
    if options.cache and not is_late:
        dataset = _cached(dataset, options.cache)
    if options.repeat is not False:
        dataset = dataset.repeat(None if options.repeat is True else options.repeat)
    ahead = (_AUTO if size is not None else 0) if options.prefetch is None else options.prefetch
    if ahead:
        dataset = dataset.prefetch(ahead)
    return dataset.with_options(_options(tensorflow))


def _is_dense(tensorflow: Any, dataset: Any) -> bool:
    """Whether all elements are tensors of one shape, which is known."""
    return all(
        isinstance(each, tensorflow.TensorSpec) and each.shape.is_fully_defined()
        for each in tensorflow.nest.flatten(dataset.element_spec)
    )


def _gathered(tensorflow: Any, elements: Any, total: int, order: Any) -> Any:
    """Batches of elements that are kept in one tensor for each feature.

    A batch is a gather: far less work than to hand over its elements one by one.
    """
    data = tensorflow.data
    # The shuffle asks for a second element. So the cache sees the end, and counts as filled.
    whole = elements.batch(max(1, total)).cache().shuffle(2, seed=0)

    def endless(*parts: Any) -> Any:
        return data.Dataset.from_tensors(parts if len(parts) > 1 else parts[0]).repeat()

    def gathered(numbers: Any, kept: Any) -> Any:
        return tensorflow.nest.map_structure(lambda each: tensorflow.gather(each, numbers), kept)

    pairs = data.Dataset.zip((order, whole.flat_map(plain(tensorflow, endless))))
    return pairs.map(
        plain(tensorflow, gathered), num_parallel_calls=data.AUTOTUNE, deterministic=True
    ).apply(data.experimental.assert_cardinality(len(order)))


def _cached(dataset: Any, cache: bool | str) -> Any:
    return dataset.cache(cache if isinstance(cache, str) else "")


def _with_size(tensorflow: Any, features: dict[str, Any], size: int, rest: bool) -> Any:
    """The same features, with the side of the batch in their shapes where all are as long."""
    if not rest:
        return features
    for value in features.values():
        if isinstance(value, tensorflow.Tensor):
            value.set_shape([size, *value.shape[1:]])
    return features


def _explainer(records: SplitRecords, reader: ElementReader) -> Callable[[list[int], bool], str]:
    def why(numbers: list[int], is_lost: bool) -> str:
        described = describe_marks(records, numbers, reader.fault)
        if described or not is_lost:
            return described
        sound: list[bytes] = []

        def look(payload: bytes) -> PayloadFault | None:
            fault = reader.fault(payload)
            if fault is None:
                sound.append(payload)
            return fault

        described = records.why_lost(numbers, look)
        if len(sound) < len(numbers):
            return described
        return reader.missing_key(numbers) or reader.why_apart(sound) or described

    return why


def _options(tensorflow: Any) -> Any:
    options = tensorflow.data.Options()
    # Of several workers each would read some of the files, and miss the records of the others.
    policy = tensorflow.data.experimental.AutoShardPolicy.DATA
    options.experimental_distribute.auto_shard_policy = policy
    # Python functions here have no state that an iterator's checkpoint would need.
    state = tensorflow.data.experimental.ExternalStatePolicy.IGNORE
    options.experimental_external_state_policy = state
    return options

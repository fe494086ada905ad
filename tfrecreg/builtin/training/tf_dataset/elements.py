"""Turns a batch of payloads into tensors.

All payloads are parsed in one call. Then values are decoded, resized and padded.

If all steps of a list have one shape, the list is ragged only along its steps. If the steps differ
in length, the list is also ragged along a second dimension. The context is parsed as an Example,
because `tf.io.parse_sequence_example` of TensorFlow 2.16 fails if a batch has no records and the
context has a fixed shape.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from tfrecreg.builtin.training.arrays import ArrayColumn, ImageSize
from tfrecreg.builtin.training.certificate import DIGEST_FEATURE, KEY_FEATURE
from tfrecreg.builtin.training.splits import SplitRecords
from tfrecreg.builtin.training.tf_dataset.form import PAYLOAD_NAME, ElementForm
from tfrecreg.core.example.decode import decode_or_none
from tfrecreg.core.example.sequences import read_sequence
from tfrecreg.core.images.model import ImageError
from tfrecreg.core.images.pixels import LARGEST, decode_alike
from tfrecreg.core.images.read import read_header, why_undecodable
from tfrecreg.core.records.batch_columns import digests_of
from tfrecreg.core.records.hashing import DIGEST_BYTES
from tfrecreg.core.values.errors import TfrecregError
from tfrecreg.core.values.text import safe

Features = dict[str, Any]

_LARGE = 1 << 14
"""If records have at least this mean size, their images or tensors take long to decode."""
_AT_ONCE = 32


class ElementReader:
    """Converts payloads to elements, either in a graph, or one by one to find a fault."""

    def __init__(self, records: SplitRecords, form: ElementForm, *, single: bool = False) -> None:
        self._single = single
        self._records = records
        self._form = form
        columns = form.columns or ()
        self._spec = {each.name: self._parse_spec(each) for each in columns if not each.is_list}
        self._lists = {each.name: self._parse_spec(each) for each in columns if each.is_list}
        steps = (
            (form.images, self._images),
            (form.tensors, self._tensors),
            (form.others, self._decode_others),
        )
        self._steps = [(name, step) for names, step in steps for name in names]

    def __call__(self, numbers: Any, payloads: Any) -> Features:
        """The features of a batch, each as one stacked tensor."""
        features = self._parsed(payloads)
        for name, step in self._steps:
            features[name] = step(name, features[name])
        if self._form.request.with_key:
            features[KEY_FEATURE] = self._keys(numbers)
        if self._form.request.with_digest:
            features[DIGEST_FEATURE] = self._digests(payloads)
        return features

    def finish(self, features: Features) -> Any:
        """Convert features to an element, in the form that the user gets."""
        if self._form.columns is None:
            return features[PAYLOAD_NAME]
        if self._form.supervised is not None:
            feature, label = self._form.supervised
            return features[feature], features[label]
        return features

    def pad_longest(self, *element: Any) -> Any:
        """Pad each ragged tensor to its longest row, in a batch that `finish` returned."""
        ragged = tf.RaggedTensor
        parts = element if len(element) > 1 else element[0]
        return tf.nest.map_structure(
            lambda value: value.to_tensor() if isinstance(value, ragged) else value, parts
        )

    def fault(self, payload: bytes) -> tuple[str, str] | None:
        """A `DamageSearch`. Finds out step by step why one payload fails."""
        try:
            features = self._parsed(tf.constant([payload]))
        except (tf.errors.OpError, UnicodeError) as error:
            reason = without_nodes(str(error))
            if (read_sequence if self._lists else decode_or_none)(payload) is None:
                reason = f"it is not a `tf.train.{'Sequence' if self._lists else ''}Example`"
            return "", f" does not parse: {reason}"
        for name, step in self._steps:
            try:
                step(name, features[name])
            except (tf.errors.OpError, ValueError) as error:  # Python decoders raise the latter
                data = bytes(tf.reshape(features[name], [-1])[0].numpy())
                text = getattr(error, "message", str(error))
                reason = (step == self._images and why_no_image(data)) or without_nodes(text)
                return f"`{safe(name)}` of ", f" does not decode: {reason}"
        return None

    def why_apart(self, payloads: Sequence[bytes]) -> str:
        """The reason why undamaged records cannot form a batch. Empty if they can form one."""
        features = self._parsed(tf.constant(list(payloads)))
        for name, step in self._steps:
            each = [step(name, value[None]) for value in tf.unstack(features[name])]
            shapes = sorted({tuple(value.shape[1:]) for value in each})
            if len(shapes) > 1:
                hint = "leave out `batch_size`"
                if name in self._form.images:
                    hint = "pass `image_size=…` and `channels=3` to give images one shape"
                return (
                    f"`{safe(name)}` has values of {len(shapes)} different shapes, such as "
                    f"{shapes[0]} and {shapes[-1]}, so they do not fit into one batch: {hint}"
                )
        return ""

    def _parse_spec(self, column: ArrayColumn) -> Any:
        dtype = getattr(tf, column.dtype)
        if column.is_fixed:
            return tf.io.FixedLenFeature(list(column.shape), dtype)
        if column.is_list and not column.is_ragged:
            return tf.io.FixedLenSequenceFeature(
                list(column.shape[1:]), dtype, allow_missing=not column.is_required
            )
        if column.name in self._form.ragged:
            return tf.io.RaggedFeature(dtype, row_splits_dtype=tf.int64)
        return tf.io.VarLenFeature(dtype)

    def _parsed(self, payloads: Any) -> Features:
        if self._form.columns is None:
            return {PAYLOAD_NAME: payloads}
        # Without features, only the keys are requested.
        parsed = tf.io.parse_example(payloads, self._spec) if self._spec else {}
        if self._lists:
            _, lists, lengths = tf.io.parse_sequence_example(
                payloads, sequence_features=self._lists
            )
            for name, value in lists.items():
                if not isinstance(value, tf.RaggedTensor):
                    lists[name] = tf.RaggedTensor.from_tensor(
                        value, lengths[name], row_splits_dtype=tf.int64
                    )
            parsed = dict(sorted({**parsed, **lists}.items()))
        features: Features = dict(parsed)
        for name, length in self._form.padded.items():
            ragged = features[name]
            most = tf.reduce_max(tf.concat([ragged.row_lengths(), [0]], 0))
            text = f"`{safe(name)}` has more values than the length {length} that it is padded to"
            check = tf.debugging.assert_less_equal(most, tf.constant(length, tf.int64), text)
            with tf.control_dependencies([check] if check is not None else []):
                features[name] = ragged.to_tensor(shape=[None, length, *ragged.shape[2:]])
        return features

    def _images(self, name: str, data: Any) -> Any:
        fit = self._form.request.fit
        height, width, channels = self._form.images[name]

        def finished(images: Any) -> Any:
            images = resized(fit, images)
            return tf.ensure_shape(images, (*images.shape[:-3], height, width, channels))

        def decoded(one: Any) -> Any:
            image = tf.io.decode_image(one, channels=fit.channels, expand_animations=False)
            image.set_shape((None, None, None))
            return finished(image)

        def one_by_one() -> Any:
            return self._mapped(decoded, data, tf.TensorSpec((height, width, channels), tf.uint8))

        if self._single or tf.executing_eagerly():
            return one_by_one()
        pixels = together(tf.reshape(data, [-1]), fit.channels)
        return tf.cond(tf.size(pixels) > 0, lambda: finished(pixels), one_by_one)

    def _tensors(self, name: str, data: Any) -> Any:
        spec = self._form.tensors[name]
        if not isinstance(spec, tf.TensorSpec):
            spec = tf.TensorSpec(None, spec)

        def decoded(one: Any) -> Any:
            return tf.ensure_shape(tf.io.parse_tensor(one, spec.dtype), spec.shape)

        return self._mapped(decoded, data, spec)

    def _decode_others(self, name: str, data: Any) -> Any:
        decoder, spec = self._form.others[name]

        def array(value: Any) -> Any:
            return decoder.array(value if isinstance(value, bytes) else value.item())

        def decoded(one: Any) -> Any:
            found = tf.numpy_function(array, [one], spec.dtype, stateful=False)
            return tf.ensure_shape(found, spec.shape)

        return self._mapped(decoded, data, spec)

    def _mapped(self, function: Callable[[Any], Any], data: Any, spec: Any) -> Any:
        """Apply a function to each string of a batch, and stack the results."""
        flat = tf.reshape(data, [-1])

        # Small values one after the other, which halves the time: batches run in parallel
        # anyway. Large values are decoded as cores become free, so that no core idles at the end.
        at_once = _AT_ONCE if self._records.mean_bytes >= _LARGE else 1

        def mapped() -> Any:
            if self._single and not tf.executing_eagerly():
                return tf.expand_dims(function(flat[0]), 0)
            return tf.map_fn(function, flat, fn_output_signature=spec, parallel_iterations=at_once)

        if spec.shape.is_fully_defined() and not self._single:
            return mapped()
        # An empty batch cannot be stacked without a shape.
        rank = spec.shape.rank
        known = [] if rank is None else [1 if side is None else side for side in spec.shape]
        stacked = tf.cond(tf.size(flat) > 0, mapped, lambda: tf.zeros([0, *known], spec.dtype))
        if rank is not None:
            stacked = tf.ensure_shape(stacked, [None, *spec.shape])
        return stacked

    def _keys(self, numbers: Any) -> Any:

        def found(numbers: Any) -> Any:
            # A mark of damage has no key, and is handled later.
            keys = [self._records.find_key(each) if each >= 0 else "" for each in numbers.numpy()]
            return tf.constant(keys, tf.string)

        return tf.ensure_shape(tf.py_function(found, [numbers], tf.string), numbers.shape)

    def _digests(self, payloads: Any) -> Any:
        found = tf.numpy_function(
            lambda payloads: digests_of(payloads.tolist()), [payloads], tf.uint8, stateful=False
        )
        return tf.ensure_shape(found, (*payloads.shape, DIGEST_BYTES))

    def missing_key(self, numbers: Sequence[int]) -> str:
        """Why the keys of records cannot be read; empty if they can."""
        try:
            for number in numbers if self._form.request.with_key else ():
                self._records.find_key(number)
        except TfrecregError as error:
            return str(error)
        return ""


def without_nodes(text: str) -> str:
    """A message of TensorFlow without the names of the graph's nodes."""
    line = text.partition("\n")[0]
    return safe(re.sub(r"\{\{.*\}\} |Name: [^,]*, | \[Op:\w+\].*", "", line), limit=500)


def why_no_image(data: bytes) -> str | None:
    """The reason why TensorFlow refuses an image, if its header shows it."""
    try:
        return why_undecodable(data, read_header(data))
    except ImageError as error:
        return error.detail


_AVERAGES = ("bilinear", "nearest", "area")
"""These methods average pixels, so their results are always from 0 to 255."""


def resized(fit: ImageSize, images: Any) -> Any:
    """Resize images to the size that `fit` gives, as uint8."""
    if fit.size is None:
        return images
    size = fit.size
    if fit.fit == "pad":
        inner, start = _inside(images, *fit.sides)
        sized = tf.image.resize(images, inner, method=fit.method, antialias=fit.antialias)
        sized = tf.image.pad_to_bounding_box(sized, *start, *fit.sides)
    else:
        if fit.fit == "crop":
            images = _centre(images, *fit.sides)
        elif not isinstance(size, tuple):  # rounded down, like `Resize` of torchvision
            height, width = _sides(images)
            shorter = tf.maximum(tf.minimum(height, width), 1)
            sides = tf.stack([height * size // shorter, width * size // shorter])
            size = tf.cast(sides, tf.int32)
        sized = tf.image.resize(images, size, method=fit.method, antialias=fit.antialias)
    # The other methods overshoot, and a plain cast would turn white into black.
    cast = tf.cast if fit.method in _AVERAGES else tf.saturate_cast
    return cast(tf.round(sized), tf.uint8)


def _sides(images: Any) -> tuple[Any, Any]:
    shape = tf.shape(images, tf.int64)
    return shape[-3], shape[-2]


def _centre(images: Any, height: Any, width: Any) -> Any:
    """Crop to the largest centered part in the ratio of `height` to `width`. Sides are rounded
    down."""
    has_height, has_width = _sides(images)
    rows = tf.clip_by_value(has_width * height // width, 1, has_height)
    columns = tf.clip_by_value(has_height * width // height, 1, has_width)
    top, left = (has_height - rows) // 2, (has_width - columns) // 2
    return images[..., top : top + rows, left : left + columns, :]


def _inside(images: Any, height: Any, width: Any) -> tuple[Any, tuple[Any, Any]]:
    """The largest size that fits into `height` and `width` and keeps the proportions of the images.
    Its sides are rounded down. The second pair is the top and left offset that centers the image.

    `tf.image.resize_with_pad` computes the same, but refuses images so thin that a side becomes 0.
    """
    high, wide = (tf.maximum(side, 1) for side in _sides(images))
    rows = tf.clip_by_value(high * width // wide, 1, height)
    columns = tf.clip_by_value(wide * height // high, 1, width)
    top = tf.maximum(height * wide - high * width, 0) // (2 * wide)
    left = tf.maximum(width * high - wide * height, 0) // (2 * high)
    inner = tf.cast(tf.stack([rows, columns]), tf.int32)
    return inner, (tf.cast(top, tf.int32), tf.cast(left, tf.int32))


_SLACK = 1 << 10
"""A small PNG has at most this many bytes more than its pixels."""
_MOST_MISSES = 8
"""After this many consecutive batches with other images, no further batch is decoded as a whole."""


def together(data: Any, channels: int) -> Any:
    """The images of a batch, if all of them are small PNGs of one shape."""
    none = tf.zeros((0, 0, 0, 0), tf.uint8)
    most = tf.reduce_max(tf.strings.length(data))
    decode = _decoder(channels)
    pixels = tf.cond(
        most <= LARGEST + _SLACK,
        lambda: tf.numpy_function(decode, [data], tf.uint8, stateful=False),
        lambda: none,
    )
    return tf.ensure_shape(pixels, (None, None, None, None))


def _decoder(channels: int) -> Callable[[npt.NDArray[np.object_]], npt.NDArray[np.uint8]]:
    misses = 0

    def decode(images: npt.NDArray[np.object_]) -> npt.NDArray[np.uint8]:
        nonlocal misses
        pixels = decode_alike(images.tolist()) if misses < _MOST_MISSES else None
        if pixels is not None and channels not in (0, pixels.shape[-1]):
            # TensorFlow does other conversions.
            is_grey = (pixels.shape[-1], channels) == (1, 3)
            pixels = np.repeat(pixels, 3, axis=-1) if is_grey else None
        misses = misses + 1 if pixels is None else 0
        return np.empty((0, 0, 0, 0), np.uint8) if pixels is None else pixels

    return decode

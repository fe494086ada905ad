"""Images of single elements, decoded one by one: four times as fast as batches of one record.

An error of an image names its record. To find out, only images that do not begin and end as a
whole JPEG or PNG, or that have not the sides or channels they should, are decoded by a call of
Python.
"""

from __future__ import annotations

from typing import Any

from tfrecreg.builtin.training.tf_dataset.elements import why_no_image, without_nodes
from tfrecreg.builtin.training.tf_dataset.form import ElementForm
from tfrecreg.core.registry.shardset.load_records import SplitRecords
from tfrecreg.core.values.text import safe

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

"""Images as pixels in a `tf.data` graph; one that does not decode is named by its record.

TensorFlow's own error names neither file nor record. A JPEG or PNG that begins and ends as one is
decoded by the graph, at its speed. All else goes through Python, which knows where it came from:
other formats, files that are cut, what is no image. Of damage in the middle of a file the error is
TensorFlow's; `check` with `decode` names that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tfrecreg.operations.load_records import SplitRecords
from tfrecreg.pictures import PictureError, read_header
from tfrecreg.pictures.decodable import why_undecodable
from tfrecreg.text import safe

if TYPE_CHECKING:
    import tensorflow as tf

__all__ = ["decode_images"]

_AROUND = 16
"""Zeros before and behind an image, so that its ends can be looked at however short it is."""
_WHOLE = ((b"\xff\xd8\xff", b"\xff\xd9"), (b"\x89PNG\r\n\x1a\n", b"IEND\xaeB`\x82"))
"""How a JPEG and a PNG that nobody cut begin and end."""


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
    except PictureError as error:
        return error.detail

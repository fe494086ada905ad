"""Features whose values the decoders of plugins read: one call of Python for each value."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tfrecreg.builtin.training.tf_dataset.form import ElementForm
from tfrecreg.core.example.decode import decode_or_none
from tfrecreg.core.images.decoding import FeatureDecoder
from tfrecreg.core.plugins.decoders import Decoders
from tfrecreg.core.registry.shardset.load_records import SplitRecords
from tfrecreg.core.values.errors import RefusedError, UsageError
from tfrecreg.core.values.text import safe


def with_others(
    tensorflow: Any, records: SplitRecords, form: ElementForm, decoders: Decoders
) -> ElementForm:
    """The form, where features of other formats than TensorFlow's are decoded by plugins, and those
    that the schema declares as pixels.

    The first record decides about plugins. It is read only if there are third-party decoders.
    """
    payload = records.first_payload() if form.images and decoders.third_party() else None
    example = None if payload is None else decode_or_none(payload)
    others: dict[str, tuple[FeatureDecoder, Any]] = {}
    for name, pixels in decoders.pixels.items():
        if name in form.images:
            _expect_plain(form, name, "has pixels in the schema's size")
            others[name] = pixels, tensorflow.TensorSpec(pixels.size, tensorflow.uint8)
    for name in form.images:
        if name in others:
            continue
        feature = None if example is None else example.get(name)
        data = feature.values[0] if feature is not None and feature.count else b""
        if not isinstance(data, bytes) or decoders.find_bundled(name, data) is not None:
            continue
        decoder = decoders.find_third_party(name, data)
        if decoder is None:
            continue
        _expect_plain(form, name, "is decoded by a plugin")
        try:
            array = decoder.array(data)
        except ValueError as error:
            raise RefusedError(
                f"`{safe(name)}` of {records.named(0)} does not decode: {error}",
                hint="`tfrecreg check` with the validator `images` finds all such values",
            ) from error
        others[name] = decoder, tensorflow.TensorSpec([None] * array.ndim, array.dtype)
    images = {name: sides for name, sides in form.images.items() if name not in others}
    return replace(form, images=images, others=others)


def _expect_plain(form: ElementForm, name: str, how: str) -> None:
    if form.channels or form.fit.size is not None:
        raise UsageError(
            f"`{safe(name)}` {how}, and `channels` and `image_size` do not apply to it",
            hint="leave them out, and map a function over the dataset",
        )

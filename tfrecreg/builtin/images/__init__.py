"""The bundled feature decoder, which decodes images."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tfrecreg.api import DecoderRecord, hookimpl

if TYPE_CHECKING:
    from tfrecreg.api import FeatureDecoder


@hookimpl
def tfrecreg_decoders() -> Iterator[DecoderRecord]:
    """Yield the decoder of images. Its modules are imported when it first decodes a value."""
    yield DecoderRecord(
        name="pictures", summary="JPEG, PNG, GIF, WebP and BMP images", load=_load, extra="images"
    )


def _load() -> type[FeatureDecoder]:
    from tfrecreg.builtin.images.decoder import PictureDecoder

    return PictureDecoder

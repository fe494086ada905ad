"""The bundled decoder of features, which reads images."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tfrecreg.api import DecoderRecord, hookimpl

if TYPE_CHECKING:
    from tfrecreg.api import FeatureDecoder


@hookimpl
def tfrecreg_decoders() -> Iterator[DecoderRecord]:
    """Yield the decoder of images; its modules load when a value is first decoded."""
    yield DecoderRecord(
        name="pictures", summary="JPEG, PNG, GIF, WebP and BMP images", load=_load, extra="images"
    )


def _load() -> type[FeatureDecoder]:
    from tfrecreg.builtin.images.decoder import PictureDecoder

    return PictureDecoder

"""Decoders of others are guarded, and chosen by the first value of a feature."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from image_support import png

from tfrecreg.api import FeatureDecoder, Thumbnail
from tfrecreg.core.images.pixels import decode_pixels
from tfrecreg.core.plugins.decoders import Decoders, GuardedDecoder
from tfrecreg.core.plugins.guard import PluginId
from tfrecreg.core.values.errors import PluginError

ANSWER: list[Any] = [None]
"""The result or the error of each method."""


def answered() -> Any:
    if isinstance(ANSWER[0], BaseException):
        raise ANSWER[0]
    return ANSWER[0]


class Parrot(FeatureDecoder):
    def reads(self, feature: str, start: bytes) -> bool:
        return bool(answered())

    def array(self, data: bytes) -> Any:
        return answered()

    def resized(self, data: bytes, fit: Any) -> Any:
        return answered()

    def header(self, data: bytes) -> Any:
        return answered()

    def thumbnail(self, data: bytes, side: int) -> Any:
        return answered()

    def caption(self, data: bytes) -> Any:
        return answered()


class Grey(FeatureDecoder):
    """The least that a decoder needs: two sides as numbers of 16 bits, and its values."""

    def reads(self, feature: str, start: bytes) -> bool:
        return feature == "grey"

    def array(self, data: bytes) -> Any:
        height, width = struct.unpack_from("<2H", data)
        return np.frombuffer(data[4:], np.int16).reshape(height, width).copy()


def guarded(kind: type[FeatureDecoder] = Parrot) -> GuardedDecoder:
    return GuardedDecoder(kind, PluginId("decoder", "parrot", "birds", "2.0"))


CALLS = {
    "reads": ("x", b""),
    "array": (b"",),
    "resized": (b"", None),
    "header": (b"",),
    "thumbnail": (b"", 8),
    "caption": (b"",),
}


@pytest.mark.parametrize("method", CALLS)
@pytest.mark.parametrize("error", [ZeroDivisionError("of zero"), SystemExit(0)])
def test_a_failure_names_its_distribution(method: str, error: BaseException) -> None:
    ANSWER[0] = error
    with pytest.raises(PluginError, match=rf"`parrot` of `birds` 2\.0 failed in `{method}`"):
        getattr(guarded(), method)(*CALLS[method])


@pytest.mark.parametrize("method", [each for each in CALLS if each != "reads"])
def test_a_damaged_value_is_told_in_one_line(method: str) -> None:
    ANSWER[0] = ValueError("it is \x1b[31mcut\nin two")
    with pytest.raises(ValueError, match=r"^it is \\x1b\[31mcut"):
        getattr(guarded(), method)(*CALLS[method])


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("array", [[1]]),
        ("resized", [[1]]),
        ("header", (1, 2)),
        ("thumbnail", b"\x89PNG"),
        ("thumbnail", Thumbnail("png", b"<script>")),
        ("thumbnail", Thumbnail("svg", b"<svg/>")),  # type: ignore[arg-type]
        ("thumbnail", Thumbnail("png", "text")),  # type: ignore[arg-type]
        ("caption", None),
    ],
)
def test_an_answer_that_cannot_be_used_is_refused(method: str, answer: Any) -> None:
    ANSWER[0] = answer
    with pytest.raises(PluginError, match=r"`parrot` of `birds` 2\.0 returned "):
        getattr(guarded(), method)(*CALLS[method])


def test_a_feature_may_hold_values_of_several_formats(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("PIL.Image", reason="the extra `images` is not installed")
    monkeypatch.setattr("tfrecreg.core.plugins.decoders._third_party", lambda _: (guarded(Grey),))
    values = np.arange(6, dtype=np.int16).reshape(2, 3)
    grey, image = struct.pack("<2H", 2, 3) + values.tobytes(), png(30, 20)
    for order in ((grey, image), (image, grey)):
        found = Decoders()
        shapes = {found.array("grey", each).shape[:2] for each in order}
        assert shapes == {(2, 3), (20, 30)}


def test_of_an_array_there_is_a_small_picture() -> None:
    pytest.importorskip("PIL.Image", reason="the extra `images` is not installed")
    values = np.arange(-300, 300, dtype=np.int16).reshape(20, 30)
    data = struct.pack("<2H", 20, 30) + values.tobytes()
    decoder = guarded(Grey)
    assert decoder.header(data) is None
    whole, small = decoder.thumbnail(data, 20), decoder.thumbnail(data, 10)
    assert whole is not None
    assert small is not None
    for shown, kept in ((whole, values), (small, values[::2, ::2])):
        scaled = ((kept.astype(float) + 300) * (255 / (int(kept.max()) + 300))).astype(np.uint8)
        assert np.array_equal(decode_pixels(shown.data)[:, :, 0], scaled)


def test_without_a_way_of_its_own_an_array_is_resized() -> None:
    pytest.importorskip("PIL.Image", reason="the extra `images` is not installed")

    class Bright(Grey):
        def array(self, data: bytes) -> Any:
            return (super().array(data)[:, :, np.newaxis] >> 8).astype(np.uint8)

    def halved(height: int, width: int) -> Any:
        return (height // 2, width // 2), (0, 0, height, width)

    data = struct.pack("<2H", 2, 4) + np.full((2, 4), 77 << 8, np.int16).tobytes()
    assert guarded(Bright).resized(data, halved).tolist() == [[[77], [77]]]
    with pytest.raises(ValueError, match=r"of 8 bits, but this is int16 of shape \(2, 4\)"):
        guarded(Grey).resized(data, halved)

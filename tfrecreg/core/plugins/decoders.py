"""Chooses a decoder for a feature's values, and guards calls of third-party decoders.

The manager of plugins is imported only for a value that no bundled decoder reads. A search for
plugins takes longer than a training job takes to open its records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tfrecreg.core.images.decoder import (
    START,
    FeatureDecoder,
    PixelsDecoder,
    Thumbnail,
    require_pillow,
)
from tfrecreg.core.images.model import ImageError, ImageHeader
from tfrecreg.core.images.read import read_header, sniff
from tfrecreg.core.plugins.bundled import DECODER
from tfrecreg.core.plugins.guard import PluginId, called, calling, failure
from tfrecreg.core.values.errors import MissingExtraError, SchemaError, TfrecregError
from tfrecreg.core.values.text import safe, si_bytes

if TYPE_CHECKING:
    import numpy.typing as npt

    from tfrecreg.core.check.scan.interface import Target
    from tfrecreg.core.images.pixels import Resizing
    from tfrecreg.core.plugins.manager import Announced
    from tfrecreg.core.plugins.records import DecoderRecord
    from tfrecreg.core.storage.interface import Storage

_CAPTION = 200
"""Maximum length of a caption in characters."""


DeclaredPixels = tuple[int, int, int]
"""Height, width and channels."""
_NONE: Mapping[str, DeclaredPixels] = MappingProxyType({})


class Decoders:
    """The decoders of features: each feature gets the decoder that reads its first value.

    The bundled decoder comes first. If several other decoders read a value, the first by name is
    used. The object can be pickled, and several threads can use it.
    """

    def __init__(
        self, off: Sequence[str] = (), pixels: Mapping[str, DeclaredPixels] = _NONE
    ) -> None:
        self._off = tuple(off)
        self.pixels = {name: PixelsDecoder(size) for name, size in pixels.items()}
        """The decoders of features that hold pixels."""
        self._chosen: dict[str, FeatureDecoder] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return Decoders, (self._off, {name: each.size for name, each in self.pixels.items()})

    def array(self, feature: str, data: bytes, fit: Resizing | None = None) -> npt.NDArray[Any]:
        """Decode a value. If `fit` is given, resize the image to the size that `fit` returns."""

        def decoded(by: FeatureDecoder) -> npt.NDArray[Any]:
            return by.array(data) if fit is None else by.resized(data, fit)

        decoder = self.pixels.get(feature) or self._chosen.get(feature)
        if decoder is None:
            decoder = self._chosen[feature] = self._reader(feature, data)
        try:
            return decoded(decoder)
        except ValueError:
            if feature in self.pixels:
                raise
            other = self._reader(feature, data)  # a feature may hold values of several kinds
            if other is decoder:
                raise
            return decoded(other)

    def find_bundled(self, feature: str, data: bytes) -> FeatureDecoder | None:
        """The bundled decoder if it reads a value, else None."""
        decoder = self.pixels.get(feature) or _bundled()
        return decoder if decoder.reads(feature, data[:START]) else None

    def find_third_party(self, feature: str, data: bytes) -> FeatureDecoder | None:
        """The third-party decoder that reads a value; None if no such decoder reads the value."""
        start = data[:START]
        return next((each for each in self.third_party() if each.reads(feature, start)), None)

    def third_party(self) -> tuple[FeatureDecoder, ...]:
        """The decoders of other distributions, in order of name."""
        return _third_party(self._off)

    def third_party_names(self) -> list[str]:
        """The name and version of each third-party decoder. No decoder is loaded."""
        return [f"{each.qualified} {each.version}" for each in _announced(self._off)]

    def expect(self) -> None:
        """Raise an error if nothing can be decoded."""
        try:
            require_pillow("decoding images")
        except MissingExtraError:
            if not self.third_party():
                raise

    def header(self, feature: str, data: bytes) -> ImageHeader | None:
        """The header of an encoded image of any format; None if it has no readable header."""
        if feature in self.pixels:
            return self.pixels[feature].header(data)
        try:
            return read_header(data)
        except ImageError:
            decoder = self.find_third_party(feature, data)
        try:
            return decoder.header(data) if decoder is not None else None
        except ValueError:
            return None

    def _reader(self, feature: str, data: bytes) -> FeatureDecoder:
        """The decoder that reads a value. If no decoder reads the value, the bundled decoder, whose
        error says why the value cannot be read.
        """
        found = self.find_bundled(feature, data) or self.find_third_party(feature, data)
        return found or _bundled()


def decoders_of(home: Storage | None, pixels: Mapping[str, DeclaredPixels] = _NONE) -> Decoders:
    """The decoders that are not switched off by the registry of a target."""
    if home is None:
        return Decoders(pixels=pixels)
    from tfrecreg.core.registry.registry import Registry  # workers do not need it

    try:
        return Decoders(Registry(home).config.plugins.disable, pixels)
    except TfrecregError:  # records can be read even if the configuration is broken
        return Decoders(pixels=pixels)


def target_decoders(target: Target) -> Decoders:
    """The decoders for a target's records. They decode the pixels that the schema declares."""
    pixels: Mapping[str, DeclaredPixels] = _NONE
    if target.schema is not None and "pixels:" in target.schema:
        from tfrecreg.core.schema.proto import parse_schema  # few schemas declare pixels

        try:
            pixels = parse_schema(target.schema, target.schema_path or "schema").pixels()
        except SchemaError:  # records can be shown without the schema
            pixels = _NONE
    return decoders_of(target.home, pixels)


def _announced(off: tuple[str, ...]) -> list[Announced[DecoderRecord]]:
    """The decoders of other distributions, in order of name."""
    from tfrecreg.core.plugins.manager import BY_REGISTRY, plugins
    from tfrecreg.core.plugins.records import DecoderRecord

    found = plugins().without(off, BY_REGISTRY).every(DecoderRecord)
    return [each for each in found if not each.plugin_id.is_ours]


@cache
def _bundled() -> FeatureDecoder:
    module, _, name = DECODER.partition(":")
    decoder: FeatureDecoder = getattr(import_module(module), name)()
    return decoder


@cache
def _third_party(off: tuple[str, ...]) -> tuple[FeatureDecoder, ...]:
    from tfrecreg.core.plugins.manager import plugins

    return tuple(
        GuardedDecoder(plugins().load(type(each.record), each.qualified), each.plugin_id)
        for each in _announced(off)
    )


class GuardedDecoder(FeatureDecoder):
    """A third-party decoder whose calls are guarded.

    Its methods raise a :class:`ValueError` with a one-line message, or a :class:`PluginError` that
    names the distribution.
    """

    def __init__(self, kind: type[FeatureDecoder], plugin_id: PluginId) -> None:
        self._plugin_id = plugin_id
        self._decoder = called(plugin_id, "__init__", kind)

    def reads(self, feature: str, start: bytes) -> bool:
        return bool(called(self._plugin_id, "reads", self._decoder.reads, feature, start))

    def array(self, data: bytes) -> npt.NDArray[Any]:
        found: npt.NDArray[Any] = self._call("ndarray", "array", data)
        return found

    def resized(self, data: bytes, fit: Resizing) -> npt.NDArray[Any]:
        found: npt.NDArray[Any] = self._call("ndarray", "resized", data, fit)
        return found

    def header(self, data: bytes) -> ImageHeader | None:
        found: ImageHeader | None = self._call("ImageHeader NoneType", "header", data)
        return found and found._replace(format=safe(found.format, limit=40))

    def thumbnail(self, data: bytes, side: int) -> Thumbnail | None:
        found: Any = self._call("Thumbnail NoneType", "thumbnail", data, side)
        if found is None:
            return None
        if not isinstance(found.data, bytes) or sniff(found.data) != found.format:  # for a page
            raise self._plugin_id.error(f"returned a thumbnail that is not a {found.format}")
        return Thumbnail(*found)

    def caption(self, data: bytes) -> str:
        found = safe(self._call("str", "caption", data), limit=_CAPTION)
        return found or f"{safe(self._plugin_id.name)}, {si_bytes(len(data))}"

    def _call(self, kinds: str, method: str, *given: Any) -> Any:
        """Call a method of the decoder. Its result must be an object of one of the `kinds`."""
        try:
            with calling():
                found = getattr(self._decoder, method)(*given)
        except ValueError as error:
            raise ValueError(safe(str(error) or type(error).__name__, limit=300)) from error
        except Exception as error:
            raise failure(self._plugin_id, f"failed in `{method}`", error) from error
        if not {each.__name__ for each in type(found).__mro__}.intersection(kinds.split()):
            answer = f"an object of type `{type(found).__name__}` from `{method}`"
            raise self._plugin_id.error(f"returned {answer}")
        return found

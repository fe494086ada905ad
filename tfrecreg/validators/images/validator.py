"""The findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from typing import Any

from tfrecreg.codes import CodeList
from tfrecreg.findings import Code, Finding, Measure
from tfrecreg.pictures.decoder import require_pillow
from tfrecreg.scan.interface import Need, Shard, Target
from tfrecreg.scan.tally import JsonCodec, key_from
from tfrecreg.validators.images.options import ImagesOptions
from tfrecreg.validators.images.visitor import NOT_BASE64, ImagesPart, ImagesVisitor
from tfrecreg.validators.options import read_options
from tfrecreg.validators.values import ENCODED, schema_pictures

__all__ = ["ImagesValidator"]

_DECODE = "write the bytes that the text stands for: `base64.b64decode`; they are a quarter smaller"


class ImagesValidator:
    """Holds encoded pictures against what records declare; options: :class:`ImagesOptions`."""

    name = "images"
    codes: Sequence[Code] = CodeList("IMG*")
    needs = Need.EXAMPLES
    part_codec = JsonCodec(ImagesPart, codes)

    def applies(self, target: Target) -> str | None:
        manifest = target.manifest
        if manifest is None or {ENCODED, *schema_pictures(target)} & manifest.features.keys():
            return None
        return f"there is no feature of pictures: `{ENCODED}`, or one with an `image_domain`"

    def begin(self, target: Target, options: Mapping[str, Any]) -> Callable[[Shard], ImagesVisitor]:
        """A maker of visitors.

        Raises:
            ConfigError: an option that there is not, or of another type.
            SchemaError: the schema does not parse.
            MissingExtraError: `decode` without Pillow.
        """
        found = read_options(ImagesOptions, options, of=self.name)
        if found.decode:
            require_pillow("`decode` of the validator `images`")
        return partial(ImagesVisitor, found, _pictures(target, found))

    def part_key(self, target: Target, options: Mapping[str, Any]) -> str:
        found = read_options(ImagesOptions, options, of=self.name)
        decoder = version("pillow") if found.decode else None
        return key_from(decoder, *_pictures(target, found), options=options)

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, ImagesPart]]
    ) -> Iterator[Finding | Measure]:
        total = ImagesPart()
        for _, part in parts:
            total.merge(part)
        formats = dict(sorted(total.formats.items()))
        text = ", ".join(f"{count} {name.upper()}" for name, count in formats.items())
        yield Measure("images.formats", formats, text or "no pictures")
        if total.unreadable:
            yield Measure("images.unreadable", total.unreadable, f"{total.unreadable} unreadable")
        if total.decoded:
            yield Measure("images.decoded", total.decoded, f"{total.decoded} decoded")
        for finding in total.tally.findings(target.dataset):
            if finding.message.endswith(NOT_BASE64):
                finding = replace(finding, hint=_DECODE)
            yield finding


def _pictures(target: Target, options: ImagesOptions) -> tuple[str, ...]:
    return (options.feature,) if options.feature is not None else schema_pictures(target)

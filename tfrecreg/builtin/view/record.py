"""One record: its features, the objects on its image, the remarks of its build, its raw file."""

from __future__ import annotations

import json
import math
import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any

from blake3 import blake3

from tfrecreg.core.build.media import sniff_media
from tfrecreg.core.build.sources.guarded import GuardedSource
from tfrecreg.core.check.scan.interface import Target
from tfrecreg.core.example.decode import decode_or_none
from tfrecreg.core.example.format_payload import (
    ShownImage,
    ShownPart,
    describe_payload,
    images_in,
    words,
)
from tfrecreg.core.example.kinds import PayloadKind, kind_of
from tfrecreg.core.example.model import Example, Feature, Kind
from tfrecreg.core.images.drawing import COLORS, Drawing, class_color, drawing_of, marks_of
from tfrecreg.core.images.read import sniff
from tfrecreg.core.plugins.decoders import Decoders
from tfrecreg.core.plugins.manager import plugins_with
from tfrecreg.core.records.hashing import record_digest
from tfrecreg.core.registry.manifest import LEDGER_NAME, is_adopted
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.schema.compiled import TensorSpec, tensor_specs
from tfrecreg.core.schema.labels import OBJECT_LABEL
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.storage.paths import is_url
from tfrecreg.core.storage.raw import raw_storage
from tfrecreg.core.values.errors import MissingExtraError, TfrecregError, UsageError
from tfrecreg.core.values.text import hex_start, safe, si_bytes

if TYPE_CHECKING:
    from tfrecreg.builtin.view.browsed import Browsed

TEXT = 300
"""Characters of the text of a record."""
_CLASSES = 6
"""Classes named in a label."""
_CELL = 80
"""Characters of the longest text of a record that is drawn as a row of a table."""
_FEW = 3
"""Features of a record that is not."""


def drawn(
    payload: bytes | TfrecregError,
    labels: Mapping[str, Sequence[str]],
    decoders: Decoders,
    key: str | None,
) -> dict[str, Any]:
    """What is shown of a record in the grid."""
    shown: dict[str, Any] = {
        "key": safe(key) if key is not None else None,
        "label": None,
        "caption": safe(key, limit=80) if key is not None else "",
        "feature": None,
        "width": None,
        "height": None,
        "kind": "none",
        "text": None,
        "boxes": [],
        "polygons": [],
        "points": [],
        "problem": None,
    }
    if isinstance(payload, TfrecregError):
        return {**shown, "problem": payload.message}
    example = example_of(payload)
    if example is None:
        parts = (
            f"{each.name}: {each.shown}".removeprefix(": ")
            for each in payload_parts(payload, decoders)
        )
        text = "\n".join(parts) or f"{si_bytes(len(payload))}, {hex_start(payload)}"
        return {**shown, "kind": "bytes", "text": text[:TEXT]}
    label = _label(example, labels)
    shown["label"] = label or None
    if label:
        shown["caption"] = label
    image = first_image(example, decoders)
    if image is not None and image.header is not None:
        shown.update(
            kind="image",
            feature=image.feature,
            width=image.header.width,
            height=image.header.height,
            **_shapes(drawing_of(example, labels), example),
        )
        return shown
    return {**shown, **_without_image(example, decoders)}


def example_of(payload: bytes) -> Example | None:
    """The features of a payload; None if it is no Example."""
    example = decode_or_none(payload)
    kind = kind_of(payload, 0, len(payload), example)
    return example if kind is PayloadKind.EXAMPLE else None


def payload_parts(payload: bytes, decoders: Decoders) -> Sequence[ShownPart]:
    """The parts of a payload that is no Example."""
    kind = kind_of(payload, 0, len(payload), decode_or_none(payload))
    return describe_payload(payload, kind, partial(words, decoders=decoders))


def first_image(example: Example, decoders: Decoders) -> ShownImage | None:
    """The image that stands for a record: the first with a header."""
    return next((each for each in images_in(example, decoders) if each.header is not None), None)


def kind_of_feature(name: str, feature: Feature, decoders: Decoders) -> str:
    """``image``, ``pixels``, ``audio``, ``text``, ``numbers`` or ``bytes``."""
    if name in decoders.pixels:
        return "pixels"
    if feature.kind is not Kind.BYTES:
        return "numbers"
    for value in feature.first(1):
        if sniff(value) is not None:
            return "image"
        if sniff_media(value) is not None:
            return "audio"
        if readable_text(value) is not None:
            return "text"
        return "image" if decoders.header(name, value) is not None else "bytes"
    return "bytes"


def readable_text(value: bytes, limit: int = 4 * TEXT) -> str | None:
    """The beginning of a value, where all of it that is shown can be printed."""
    try:
        text = value[:limit].decode("utf-8", "strict" if len(value) <= limit else "ignore")
    except UnicodeDecodeError:
        return None
    printable = sum(each.isprintable() or each in "\t\n\r" for each in text)
    return text if printable == len(text) else None


def _without_image(example: Example, decoders: Decoders) -> dict[str, Any]:
    """Kind, feature and text of a record without an image."""
    texts: list[tuple[int, str, str]] = []
    numbers: list[str] = []
    others: list[str] = []
    for name, feature in sorted(example.items()):
        kind = kind_of_feature(name, feature, decoders)
        if kind == "audio":
            return {"kind": "audio", "feature": name}
        if kind == "text":
            text = readable_text(feature.first(1)[0]) or ""
            texts.append((len(text), name, text))
        elif kind in ("numbers", "pixels"):
            first = feature.first(8)
            shown = ", ".join(
                f"{each:.6g}" if isinstance(each, float) else str(each) for each in first
            )
            more = " …" if feature.count > 8 else ""
            numbers.append(f"{safe(name, limit=60)}: {shown}{more}")
        else:
            size = sum(feature.sizes) if feature.kind is Kind.BYTES else 0
            others.append(f"{safe(name, limit=60)}: {si_bytes(size)}")
    longest = max(texts, default=None)
    if longest is not None and longest[0] <= _CELL and len(texts) + len(numbers) > _FEW:
        # A row of a table: no feature of it stands for the record.
        cells = [f"{safe(name, limit=60)}: {text}" for _, name, text in texts]
        return {"kind": "numbers", "text": "\n".join(sorted([*cells, *numbers]))[:TEXT]}
    if longest is not None and (longest[0] > 20 or not numbers):
        return {"kind": "text", "feature": longest[1], "text": longest[2][:TEXT]}
    if numbers:
        return {"kind": "numbers", "text": "\n".join(numbers)[:TEXT]}
    if others:
        return {"kind": "bytes", "text": "\n".join(others)[:TEXT]}
    return {"kind": "none"}


def finite(value: Any) -> Any:
    """A number that JSON has."""
    return value if not isinstance(value, float) or math.isfinite(value) else str(value)


def _label(example: Example, labels: Mapping[str, Sequence[str]]) -> str:
    named = [
        f"{mark.name} × {mark.objects}" if mark.objects > 1 else mark.name
        for mark in marks_of(example, labels)
    ]
    plain = example.get("label")
    if not named and plain is not None and plain.kind is Kind.INT64 and plain.count == 1:
        return str(plain.values[0])  # as the facet of classes has it
    more = [f"{len(named) - _CLASSES} more"] if len(named) > _CLASSES else []
    return ", ".join(named[:_CLASSES] + more)


def _shapes(drawing: Drawing, example: Example) -> dict[str, Any]:
    """Boxes, polygons and points, in fractions of the sides."""
    known = example.get(OBJECT_LABEL)
    numbers = known.values if known is not None and known.kind is Kind.INT64 else ()
    boxes, polygons, points = [], [], []
    for at, each in enumerate(drawing.objects):
        about = {
            "class": each.mark.name or None,
            "number": int(numbers[at]) if at < len(numbers) else None,
            "color": COLORS[each.mark.color],
        }
        if each.box is not None:
            left, top, width, height = (round(side, 5) for side in each.box)
            sides = {"x0": left, "y0": top, "x1": left + width, "y1": top + height}
            boxes.append({**sides, **about})
        corners = (
            ((x, y), (x + width, y), (x + width, y + height), (x, y + height))
            for x, y, width, height in each.strips
        )
        polygons += [
            {"points": [[round(x, 5), round(y, 5)] for x, y in outline], **about}
            for outline in (*each.polygons, *corners)
        ]
        points += [[round(x, 5), round(y, 5)] for x, y in each.points]
    return {"boxes": boxes, "polygons": polygons, "points": points}


def classes_of(labels: Mapping[str, Sequence[str]], most: int = 1000) -> Iterator[dict[str, Any]]:
    """The classes of a target with their colors."""
    seen: set[tuple[int, str]] = set()
    for _, names in sorted(labels.items()):
        for number, name in islice(enumerate(names), most):
            if name and (number, name) not in seen:
                seen.add((number, name))
                color = COLORS[class_color(number)]
                yield {"number": number, "name": safe(name, limit=60), "color": color}


_VALUES = 64
_HEX = 256
_TENSOR_TEXT = 2000
_UNITS = {"context": "value", "list": "step"}
_LEDGER_BYTES = 64 << 20


class LedgerRows:
    """The remarks on items that are in the ledger of a build. Read when they are asked for."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def of(self, split: str, key: str | None) -> dict[str, Any] | None:
        """The row of an item; None without one."""
        return self._rows.get((split, key)) if key is not None else None

    @cached_property
    def _rows(self) -> dict[tuple[str, str], dict[str, Any]]:
        target = self._target
        files = target.manifest.files if target.manifest is not None else ()
        entry = next((each for each in files if each.path == LEDGER_NAME), None)
        if entry is None or target.storage is None:
            return {}
        try:
            data = target.storage.read(LEDGER_NAME, limit=_LEDGER_BYTES)
        except TfrecregError:
            return {}  # the check says so
        if blake3(data).hexdigest() != entry.blake3:
            return {}
        rows = map(json.loads, data.splitlines())
        return {(str(row.get("split")), str(row.get("key"))): row for row in rows}


class RawFiles:
    """The raw files of a target's records. The source is opened when one is asked for."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def of(self, split: str, key: str | None) -> str | None:
        """The path of the raw file of a record, escaped; None if it is not known or not there."""
        source = self._source
        if source is None or key is None:
            return None
        try:
            path = source.raw_path(split, key)
            there = path is not None and raw_storage(self._folder).stat(path, follow="all")
        except TfrecregError:
            return None
        return safe(posixpath.join(self._folder, path), limit=1000) if path and there else None

    @cached_property
    def _folder(self) -> str:
        """Of the raw data; empty for none on this machine: the viewer asks no other one."""
        home = self._target.home
        raw = Registry(home).dataset(self._target.dataset).raw_folder if home is not None else None
        return "" if raw is None or is_url(raw) else raw

    @cached_property
    def _source(self) -> GuardedSource | None:
        """The source that made the build, on the raw data; None where it does not know them."""
        manifest, home = self._target.manifest, self._target.home
        if manifest is None or not manifest.source.plugin or is_adopted(manifest):
            return None
        name = manifest.source.plugin
        try:
            if not self._folder:
                return None
            known = plugins_with(name, home)
            options, _ = known.source_options(name, manifest.source.options)
            source = known.open_source(name, raw_storage(self._folder), options)
        except TfrecregError:
            return None  # such as a plugin that is not installed here
        return source if source.locates else None


def whole_record(browsed: Browsed, number: int) -> dict[str, Any]:
    """A record with its place, its features and its findings."""
    seen, record = browsed.shards.place(number)
    browsed.shards.expect_same(seen)
    (payload,) = browsed.shards.payloads([number])
    offset, length = browsed.shards.where(number)
    key = browsed.shards.key(number)
    found: dict[str, Any] = {
        **browsed.drawn(number, payload),
        "shard_name": safe(seen.name, limit=1000),
        "offset": offset,
        "length": length,
        "digest": record_digest(payload).hex() if isinstance(payload, bytes) else None,
        "features": [],
        "ledger": None,
        "raw": browsed.raws.of(seen.split, key),
        "findings": browsed.report.about(seen.name, record),
        "hex": "",
        "previous": _place(browsed, number - 1),
        "next": _place(browsed, number + 1),
    }
    row = browsed.ledger.of(seen.split, key)
    if row is not None:
        found["ledger"] = {name: safe(str(value), limit=1000) for name, value in row.items()}
    if isinstance(payload, bytes):
        example = example_of(payload)
        found["features"] = (
            [_feature(browsed, name, feature) for name, feature in sorted(example.items())]
            if example is not None
            else [_part(each) for each in payload_parts(payload, browsed.decoders)]
        )
        found["hex"] = payload[:_HEX].hex(" ") if example is None else ""
    return found


def _place(browsed: Browsed, number: int) -> dict[str, int] | None:
    if not 0 <= number < len(browsed.shards):
        return None
    seen, record = browsed.shards.place(number)
    return {"shard": seen.number, "record": record}


def _part(part: ShownPart) -> dict[str, Any]:
    return {
        "name": part.name or part.part,
        "type": part.kind,
        "count": part.count,
        "unit": _UNITS.get(part.part, "byte"),
        "kind": "bytes",
        "values": [],
        "text": part.shown,
        "hex": "",
        "note": part.part,
    }


def _feature(browsed: Browsed, name: str, feature: Feature) -> dict[str, Any]:
    first = feature.first(_VALUES)
    is_bytes = feature.kind is Kind.BYTES
    head = first[0] if is_bytes and first else b""
    text = readable_text(head, 20 * TEXT) if is_bytes and first else None
    return {
        "name": safe(name),
        "type": feature.kind.name.lower(),
        "count": feature.count,
        "unit": "value",
        "kind": kind_of_feature(name, feature, browsed.decoders),
        "values": [_value(each) for each in first],
        "text": text,
        "hex": head[:_HEX].hex(" ") if is_bytes and text is None else "",
        "note": words(feature, browsed.decoders, name),
    }


def _value(value: bytes | float | int) -> Any:
    if not isinstance(value, bytes):
        # Beyond 2^53 a number of JavaScript is another one.
        return finite(value) if isinstance(value, float) or abs(value) < 1 << 53 else str(value)
    text = readable_text(value)
    return text[:TEXT] if text is not None else f"{len(value)} bytes"


def tensors(
    report: Callable[[int], None], payload: bytes, schema: str | None, path: str
) -> dict[str, Any]:
    """The tensors that TensorFlow parses of a record, in a child."""
    del report
    example = example_of(payload)
    if example is None:
        raise UsageError("the record is not a tf.train.Example", hint="it has no features")
    types: dict[Kind, Any] = {Kind.BYTES: "string", Kind.FLOAT: "float32", Kind.INT64: "int64"}
    specs: Sequence[TensorSpec] = (
        tensor_specs(parse_schema(schema, path))
        if schema is not None
        else [
            TensorSpec(name, "ragged", types[feature.kind])
            for name, feature in sorted(example.items())
            if feature.kind in types
        ]
    )
    try:
        tensorflow = import_module("tensorflow")
    except ImportError as error:
        raise MissingExtraError("parsing with TensorFlow", "tf") from error
    forms = {
        each.name: (
            tensorflow.io.FixedLenFeature(each.shape, each.dtype)
            if each.form == "fixed"
            else tensorflow.io.RaggedFeature(each.dtype)
        )
        for each in specs
    }
    try:
        parsed = tensorflow.io.parse_single_example(payload, forms) if forms else {}
    except tensorflow.errors.OpError as error:
        why = safe(str(error.message), limit=500)
        raise UsageError(
            f"TensorFlow does not parse the record: {why}",
            hint="`tfrecreg check` compares records with the schema",
        ) from None
    return {
        "tensors": [
            {
                "name": safe(name),
                "dtype": tensor.dtype.name,
                "shape": list(tensor.shape),
                "values": safe(_shown(tensor.numpy()), limit=_TENSOR_TEXT),
            }
            for name, tensor in sorted(parsed.items())
        ]
    }


def _shown(values: Any) -> str:
    flat = values.reshape(-1)[:_VALUES].tolist() if hasattr(values, "reshape") else [values]
    texts = (
        (readable_text(each) if readable_text(each) is not None else f"{len(each)} bytes")
        if isinstance(each, bytes)
        else str(each)
        for each in flat
    )
    return ", ".join(str(each)[:TEXT] for each in texts)

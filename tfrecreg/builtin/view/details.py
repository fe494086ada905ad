"""One record with all its features, and its tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from tfrecreg.builtin.view.browsed import Browsed
from tfrecreg.builtin.view.drawn import (
    TEXT,
    example_of,
    finite,
    kind_of_feature,
    payload_parts,
    readable_text,
)
from tfrecreg.digests import record_digest
from tfrecreg.errors import MissingExtraError, UsageError
from tfrecreg.example.model import Feature, Kind
from tfrecreg.operations.format_payload import ShownPart, words
from tfrecreg.schema.proto import parse_schema
from tfrecreg.schema.spec import TensorSpec, tensor_specs
from tfrecreg.text import safe

_VALUES = 64
_HEX = 256
_TENSOR_TEXT = 2000
_UNITS = {"context": "value", "list": "step"}


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
    """A part of a payload that is no Example."""
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

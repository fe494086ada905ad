"""One record: its features, its tensors, the remarks of its build, its raw file."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Callable, Sequence
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

from blake3 import blake3

from tfrecreg.builtin.view.drawn import (
    TEXT,
    example_of,
    finite,
    kind_of_feature,
    payload_parts,
    readable_text,
)
from tfrecreg.core.build.sources.guarded import GuardedSource
from tfrecreg.core.check.scan.interface import Target
from tfrecreg.core.example.format_payload import ShownPart, words
from tfrecreg.core.example.model import Feature, Kind
from tfrecreg.core.plugins.manager import plugins_with
from tfrecreg.core.records.hashing import record_digest
from tfrecreg.core.registry.manifest.model import LEDGER_NAME, is_adopted
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.schema.compiled import TensorSpec, tensor_specs
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.storage.raw import raw_storage
from tfrecreg.core.storage.remote.urls import is_url
from tfrecreg.core.values.errors import MissingExtraError, TfrecregError, UsageError
from tfrecreg.core.values.text import safe

if TYPE_CHECKING:
    from tfrecreg.builtin.view.browsed import Browsed

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

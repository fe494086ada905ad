"""A feature as JSON, without loss:

12               INT64         a JSON integer
0.5              FLOAT         a JSON number with a decimal point or an exponent
"text"           BYTES         valid UTF-8
{"base64": …}    BYTES         any other bytes
[ … ]            several values of one of these kinds
{"kind": …}      no values: ``bytes``, ``float``, ``int64``, or ``unset`` for no kind
{"float32": …}   FLOAT with values that are not finite: base64 of the little-endian bits
"""

from __future__ import annotations

import math
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from typing import Any

from tfrecreg.core.example.features import (
    bytes_feature,
    float_feature,
    int64_feature,
    unset_feature,
)
from tfrecreg.core.example.model import Feature, Kind

_EMPTY: Mapping[str, Callable[[], Feature]] = {
    "bytes": lambda: bytes_feature([]),
    "float": lambda: float_feature([]),
    "int64": lambda: int64_feature([]),
    "unset": unset_feature,
}


def feature_to_json(feature: Feature) -> Any:
    """A feature as JSON holds it, without loss; the module has the table."""
    if not feature.count:
        return {"kind": feature.kind.name.lower()}
    if feature.kind is Kind.FLOAT and not all(map(math.isfinite, feature.values)):
        return {"float32": b64encode(feature.packed_floats).decode()}
    values = list(feature.values)
    if feature.kind is Kind.BYTES:
        values = [_bytes_to_json(value) for value in values]
    return values[0] if len(values) == 1 else values


def _bytes_to_json(value: bytes) -> Any:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(value).decode()}


def feature_from_json(value: Any) -> Feature:
    """The inverse of :func:`feature_to_json`.

    Raises:
        ValueError: it is not in that form.
        KeyError: neither.
    """
    if isinstance(value, dict) and "kind" in value:
        return _EMPTY[value["kind"]]()
    if isinstance(value, dict) and "float32" in value:
        return float_feature(b64decode(value["float32"], validate=True))
    values = value if isinstance(value, list) else [value]
    first = values[0]
    if isinstance(first, int):
        return int64_feature(values)
    if isinstance(first, float):
        return float_feature(values)
    return bytes_feature(list(map(_bytes_from_json, values)))


def _bytes_from_json(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    return b64decode(value["base64"], validate=True)

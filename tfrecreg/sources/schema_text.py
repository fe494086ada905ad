"""The text of schemas that a source writes itself, since its features depend on the raw data."""

from __future__ import annotations

import json
from typing import Literal

Count = Literal["one", "optional", "list"]
"""Values a record: exactly one, none or one, or any number."""

_COUNTS = {
    "one": "presence { min_fraction: 1 min_count: 1 }\n  shape {}",
    "optional": "value_count { min: 0 max: 1 }",
    "list": "value_count { min: 0 }",
}
_FORMATS = ("bmp", "gif", "jpeg", "png", "webp")


def feature_schema(
    name: str, kind: Literal["BYTES", "FLOAT", "INT"], count: Count = "one", domain: str = ""
) -> str:
    """A feature as text of a schema.

    Args:
        name: any text.
        domain: further fields, such as ``int_domain { min: 0 }``.
    """
    lines = [f"name: {json.dumps(name)}", f"type: {kind}", _COUNTS[count], domain]
    return "feature {\n" + "".join(f"  {line}\n" for line in lines if line) + "}\n"


def image_schema(prefix: str, count: Count = "one") -> str:
    """The features of an image: ``PREFIX/encoded``, its format, its height and its width."""
    values = "".join(f"    value: {json.dumps(each)}\n" for each in _FORMATS)
    name = json.dumps(f"{prefix}/format")
    formats = f"string_domain {{\n    name: {name}\n{values}  }}"
    return (
        feature_schema(f"{prefix}/encoded", "BYTES", count, "image_domain {}")
        + feature_schema(f"{prefix}/format", "BYTES", count, formats)
        + feature_schema(f"{prefix}/height", "INT", count, "int_domain { min: 1 }")
        + feature_schema(f"{prefix}/width", "INT", count, "int_domain { min: 1 }")
    )

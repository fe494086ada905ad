"""The text of schemas that a source writes itself, since its features depend on the raw data."""

from __future__ import annotations

import json
from typing import Literal

from tfrecreg.core.example.model import Kind
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import listed, safe

Count = Literal["one", "optional", "list"]
"""Values a record: exactly one, none or one, or any number."""

_COUNTS = {
    "one": "presence { min_fraction: 1 min_count: 1 }\n  shape {}",
    "optional": "value_count { min: 0 max: 1 }",
    "list": "value_count { min: 0 }",
}
_KINDS = {Kind.BYTES: "BYTES", Kind.FLOAT: "FLOAT", Kind.INT64: "INT"}
_FORMATS = ("bmp", "gif", "jpeg", "png", "webp")


def feature_schema(
    name: str,
    kind: Literal["BYTES", "FLOAT", "INT"] | Kind,
    count: Count = "one",
    domain: str = "",
) -> str:
    """A feature as text of a schema.

    Args:
        name: any text.
        kind: the type in the schema, or the kind of the feature's values.
        domain: further fields, such as ``int_domain { min: 0 }``.

    Raises:
        UsageError: there is no such kind or count.
    """
    type_name = _KINDS.get(kind) if isinstance(kind, Kind) else kind
    for word, value, known in (("kind", type_name, _KINDS.values()), ("count", count, _COUNTS)):
        if value not in known:
            given = repr(kind if word == "kind" else count)
            raise UsageError(
                f"`{word}` of `{safe(name)}` should be {listed(known, word='or')}, found "
                f"{safe(given, limit=60)}"
            )
    lines = [f"name: {json.dumps(name)}", f"type: {type_name}", _COUNTS[count], domain]
    return "feature {\n" + "".join(f"  {line}\n" for line in lines if line) + "}\n"


def image_schema(prefix: str, count: Count = "one", *, named: bool = False) -> str:
    """The features of an image: ``PREFIX/encoded``, its format, its height and its width.

    Args:
        named: whether also its filename, source id and SHA-256: with the prefix ``image``, what
            :func:`image_features` writes.
    """
    values = "".join(f"    value: {json.dumps(each)}\n" for each in _FORMATS)
    name = json.dumps(f"{prefix}/format")
    formats = f"string_domain {{\n    name: {name}\n{values}  }}"
    names = ("filename", "source_id", "key/sha256") if named else ()
    return (
        feature_schema(f"{prefix}/encoded", "BYTES", count, "image_domain {}")
        + feature_schema(f"{prefix}/format", "BYTES", count, formats)
        + feature_schema(f"{prefix}/height", "INT", count, "int_domain { min: 1 }")
        + feature_schema(f"{prefix}/width", "INT", count, "int_domain { min: 1 }")
        + "".join(feature_schema(f"{prefix}/{name}", "BYTES", count) for name in names)
    )

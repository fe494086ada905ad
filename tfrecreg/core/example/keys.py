"""The key of a record, taken from one of its features."""

from __future__ import annotations

from tfrecreg.core.example.model import Example, Kind


def feature_key(example: Example | None, feature: str) -> str | None:
    """The one value of `feature` as text; None where it has none, several, or a float."""
    found = example.get(feature) if example is not None else None
    if found is None or found.count != 1 or found.kind not in (Kind.BYTES, Kind.INT64):
        return None
    value = found.values[0]
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)

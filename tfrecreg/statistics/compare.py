"""Which features are compared, by which measure: the schema's comparators, or sensible ones."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from tfrecreg.statistics.tfdv import load_tfdv

_SIZES = ("height", "width", "depth", "channels", "length", "size")
_LABELS = frozenset({"label", "labels", "class", "target"})


@dataclass(frozen=True, slots=True)
class Compared:
    """A schema that holds comparators and what TFDV needs around them."""

    schema: Any
    """Protobuf's message."""
    features: frozenset[str]
    """The features with a comparator."""


def comparators(
    schema: Any, statistics: Any, kind: Literal["drift", "skew"], threshold: float | None
) -> Compared:
    """What to compare.

    Where the schema has a comparator of this kind for any feature, its own count and no others.
    Else labels and sizes are compared: values that TFDV counts (categories, strings) by
    L-infinity, numbers by the Jensen-Shannon divergence, for each gives no result for the other.

    Args:
        schema: protobuf's message; None where there is none.
        statistics: of the split that is compared.
        kind: which comparators.
        threshold: of those that the schema does not have; None to leave them out.
    """
    own = load_tfdv().schema_pb2.Schema()
    named: set[str] = set()
    if schema is not None:
        own.CopyFrom(schema)
        for feature in own.feature:
            if feature.HasField(f"{kind}_comparator"):
                named.add(feature.name)
    if named or threshold is None:
        return Compared(own, frozenset(named))
    known = {feature.name: feature for feature in own.feature}
    for entry in statistics.datasets[0].features:
        name = ".".join(entry.path.step)
        measure = _measure(entry)
        feature = known.get(name)
        if measure is None or not _is_of_interest(name, feature):
            continue
        if feature is None:
            feature = own.feature.add(name=name, type=_type(entry))
        distance = getattr(getattr(feature, f"{kind}_comparator"), measure)
        distance.threshold = threshold
        named.add(name)
    return Compared(own, frozenset(named))


def _measure(entry: Any) -> str | None:
    which = entry.WhichOneof("stats")
    if which == "string_stats":
        return "infinity_norm"
    return "jensen_shannon_divergence" if which == "num_stats" else None


def _type(entry: Any) -> int:
    """The schema's type for the type of statistics: INT 0, FLOAT 1, STRING 2 become 2, 3, 1."""
    return {0: 2, 1: 3}.get(entry.type, 1)


def _is_of_interest(name: str, feature: Any) -> bool:
    words = re.split(r"[^a-z]+", name.lower())
    if words[-1] in _SIZES or not _LABELS.isdisjoint(words):
        return True
    if feature is None:
        return False
    domain = feature.WhichOneof("domain_info")
    if domain in ("string_domain", "domain", "bool_domain"):
        return True
    return domain == "int_domain" and bool(feature.int_domain.is_categorical)

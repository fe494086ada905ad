"""TFDV's anomalies and distances as plain values, and the features that it compares."""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass
from typing import Any, Literal

from tfrecreg.statistics.tfdv import load_tfdv

_SIZES = ("height", "width", "depth", "channels", "length", "size")
_LABELS = frozenset({"label", "labels", "class", "target"})


@dataclass(frozen=True, slots=True)
class Compared:
    """A schema with comparators and their context for TFDV."""

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
        schema: protobuf's message, or None.
        threshold: of those that the schema does not have; None to leave them out.
    """
    own = importlib.import_module("tensorflow_metadata.proto.v0.schema_pb2").Schema()
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


_NO_DATA = 43
_WARNING = 1


@dataclass(frozen=True, slots=True)
class Anomaly:
    """One reason of one anomaly. Its text is not escaped."""

    feature: str
    """Empty where it is about the whole dataset."""
    number: int
    """Number of its type in `AnomalyInfo.Type`."""
    warning: bool
    """TFDV calls it a warning, not an error."""
    text: str
    """TFDV's own description, with the numbers that it compared."""


@dataclass(frozen=True, slots=True)
class Distance:
    """Distance between the distributions of a feature."""

    feature: str
    measure: str
    """``L-infinity``, ``Jensen-Shannon`` or ``normalized absolute difference``."""
    value: float
    threshold: float
    """Threshold of the comparator."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """All that TFDV says of one split."""

    anomalies: tuple[Anomaly, ...]
    """Anomalies in order of feature and type."""
    distances: tuple[Distance, ...]
    """Distances in order of feature, for features whose comparator had both sides."""


_MEASURES = {1: "L-infinity", 2: "Jensen-Shannon", 3: "normalized absolute difference"}


def judge_statistics(
    statistics: Any,
    schema: Any,
    *,
    environment: str | None = None,
    previous: Any = None,
    serving: Any = None,
) -> Judgement:
    """Validate the statistics of a split, as `tfdv.validate_statistics` does.

    Args:
        statistics: TFDV's `DatasetFeatureStatisticsList`, with one dataset.
        schema: protobuf's message of a schema.
        environment: one of the schema's environments; None for the default.
        previous: statistics for the `drift_comparator`s and the comparators of versions.
        serving: statistics for the `skew_comparator`s.

    Raises:
        MissingExtraError: TFDV is not installed.
    """
    tfdv = load_tfdv()
    found = tfdv.validation.validate_statistics_internal(
        statistics,
        schema,
        environment=environment,
        previous_span_statistics=previous,
        previous_version_statistics=previous,
        serving_statistics=serving,
    )
    anomalies: list[Anomaly] = []
    if found.data_missing:
        anomalies.append(Anomaly("", _NO_DATA, False, "there are no examples"))
    for key, info in found.anomaly_info.items():
        feature = ".".join(info.path.step) or key
        anomalies += _reasons(feature, info)
    if found.HasField("dataset_anomaly_info"):
        anomalies += _reasons("", found.dataset_anomaly_info)
    distances = [
        Distance(".".join(each.path.step), _MEASURES.get(m.type, "distance"), m.value, m.threshold)
        for each in found.drift_skew_info
        for m in (*each.drift_measurements, *each.skew_measurements)
    ]
    return Judgement(
        tuple(sorted(anomalies, key=lambda each: (each.feature, each.number, each.text))),
        tuple(sorted(distances, key=lambda each: (each.feature, each.measure))),
    )


def _reasons(feature: str, info: Any) -> list[Anomaly]:
    warning = info.severity == _WARNING
    if not info.reason:
        return [Anomaly(feature, 0, warning, info.description or info.short_description)]
    return [
        Anomaly(feature, each.type, warning, each.description or each.short_description)
        for each in info.reason
    ]

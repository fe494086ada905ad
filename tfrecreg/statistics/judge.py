"""What TFDV says of statistics: its anomalies and its distances, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tfrecreg.statistics.tfdv import load_tfdv

_NO_DATA = 43
_WARNING = 1


@dataclass(frozen=True, slots=True)
class Anomaly:
    """One reason of one anomaly. Its text is not escaped."""

    feature: str
    """Empty where it is about the whole dataset."""
    number: int
    """Of its type in `AnomalyInfo.Type`."""
    warning: bool
    """TFDV calls it a warning, not an error."""
    text: str
    """TFDV's own description, with the numbers that it compared."""


@dataclass(frozen=True, slots=True)
class Distance:
    """How far the distributions of a feature are apart."""

    feature: str
    measure: str
    """``L-infinity``, ``Jensen-Shannon`` or ``normalized absolute difference``."""
    value: float
    threshold: float
    """What the comparator allows."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """All that TFDV says of one split."""

    anomalies: tuple[Anomaly, ...]
    """In order of feature and type."""
    distances: tuple[Distance, ...]
    """In order of feature; of features whose comparator got what it compares."""


_MEASURES = {1: "L-infinity", 2: "Jensen-Shannon", 3: "normalized absolute difference"}


def judge(
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

"""TFDV's anomalies as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tfrecreg.builtin.statistics.tfdv import load_tfdv

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


def judge_statistics(
    statistics: Any, schema: Any, *, environment: str | None = None
) -> list[Anomaly]:
    """Validate the statistics of a split, as `tfdv.validate_statistics` does."""
    found = load_tfdv().validation.validate_statistics_internal(
        statistics, schema, environment=environment
    )
    anomalies: list[Anomaly] = []
    if found.data_missing:
        anomalies.append(Anomaly("", _NO_DATA, False, "there are no examples"))
    for key, info in found.anomaly_info.items():
        anomalies += _reasons(".".join(info.path.step) or key, info)
    if found.HasField("dataset_anomaly_info"):
        anomalies += _reasons("", found.dataset_anomaly_info)
    return sorted(anomalies, key=lambda each: (each.feature, each.number, each.text))


def _reasons(feature: str, info: Any) -> list[Anomaly]:
    warning = info.severity == _WARNING
    if not info.reason:
        return [Anomaly(feature, 0, warning, info.description or info.short_description)]
    return [
        Anomaly(feature, each.type, warning, each.description or each.short_description)
        for each in info.reason
    ]

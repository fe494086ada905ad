"""Statistics as bytes and as text, by protobuf alone: TFDV is not needed to keep or show them."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

DatasetFeatureStatisticsList = Any
"""The message of `tensorflow_metadata.proto.v0.statistics_pb2`."""


def parse_proto(data: bytes) -> DatasetFeatureStatisticsList:
    """The message that `data` serializes.

    Raises:
        ValueError: they serialize none.
    """
    message_error = importlib.import_module("google.protobuf.message").DecodeError
    try:
        return _messages().DatasetFeatureStatisticsList.FromString(data)
    except message_error as error:
        raise ValueError(str(error)) from error


def render_proto(proto: DatasetFeatureStatisticsList) -> str:
    """The text form, which `tfdv.load_stats_text` reads, the same by every release of protobuf."""
    text_format = importlib.import_module("google.protobuf.text_format")
    return str(text_format.MessageToString(proto, as_utf8=True))


def named(
    statistics: Iterable[tuple[str, DatasetFeatureStatisticsList]],
) -> DatasetFeatureStatisticsList:
    """One list of several: each dataset with its name, which for TFDV is that of a slice."""
    together = _messages().DatasetFeatureStatisticsList()
    for name, proto in statistics:
        for dataset in proto.datasets:
            together.datasets.add().CopyFrom(dataset)
            together.datasets[-1].name = name
    return together


def _messages() -> Any:
    return importlib.import_module("tensorflow_metadata.proto.v0.statistics_pb2")

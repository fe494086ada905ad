"""The only module that imports TensorFlow Data Validation.

Importing TFDV takes seconds and half a gigabyte, so it happens only when statistics are validated.
The import also prints warnings about Python versions, IPython and the processor, which do not
matter for statistics.

This module converts TFDV's anomalies to plain values.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

from tfrecreg.core.values.errors import FailureError, MissingExtraError, install_command


def missing_tfdv() -> MissingExtraError | None:
    """The error that names the command to install TFDV; None if TFDV is installed.

    Does not import TFDV.
    """
    if find_spec("tensorflow_data_validation") is not None:
        return None
    return MissingExtraError("TensorFlow Data Validation", "tfdv")


@cache
def load_tfdv() -> Any:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    said = io.StringIO()
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(said),
            _silent_descriptor(),
        ):
            warnings.simplefilter("ignore")
            import tensorflow_data_validation
    except ImportError as error:
        raise FailureError(
            f"TensorFlow Data Validation is installed but cannot be imported: {error!s}; "
            f"{install_command(extra='tfdv')} installs a compatible set"
        ) from error
    finally:
        # A library that warns during its import leaves a handler on the current stream.
        root.handlers[:] = handlers
        root.setLevel(level)
    return tensorflow_data_validation


@contextlib.contextmanager
def _silent_descriptor() -> Iterator[None]:
    """Suppress what C++ code writes to stderr.

    TensorFlow 2.21 and TFDV 1.21 log there before they read the variables that disable logging.
    """
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


_WARNING = 1


@dataclass(frozen=True, slots=True)
class Anomaly:
    """One reason for an anomaly. Its text is not escaped."""

    feature: str
    """Name of the feature; empty if the anomaly concerns the whole dataset."""
    number: int
    """The number of its type in the enum `AnomalyInfo.Type`."""
    warning: bool
    """Whether TFDV rates it as a warning, not an error."""
    text: str
    """TFDV's own description, with the compared numbers."""


def judge_statistics(
    statistics: Any, schema: Any, *, environment: str | None = None
) -> list[Anomaly]:
    """Validate the statistics of a split, as `tfdv.validate_statistics` does."""
    validation = load_tfdv().api.validation_api
    found = validation.validate_statistics_internal(statistics, schema, environment=environment)
    anomalies: list[Anomaly] = []
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

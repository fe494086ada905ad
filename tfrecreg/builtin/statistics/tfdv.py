"""The only module that imports TensorFlow Data Validation.

Importing TFDV takes seconds and half a gigabyte, so it happens when statistics are judged, and not
on the way to anything else. It also talks: warnings of Google's libraries about Python versions, a
remark on IPython, TensorFlow on the processor. None of it concerns users of statistics.

TFDV 1.16 and 1.21 both serve, and give the same numbers. Which of them is for which machine stands
in `pyproject.toml`; `_release_for` says the same, and knows glibc, which no marker does.

TFDV's anomalies as plain values.
"""

from __future__ import annotations

import contextlib
import gc
import io
import logging
import os
import platform
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

from tfrecreg.core.values.errors import (
    FailureError,
    MissingExtraError,
    TfrecregError,
    install_command,
)
from tfrecreg.core.values.text import safe

_GLIBC = (2, 39)
"""The oldest that the wheels of TFDV 1.21 for Linux run on."""


class Tfdv(NamedTuple):
    """The used modules of TFDV, without types."""

    api: Any
    """`tensorflow_data_validation` itself."""
    validation: Any
    """The module that validates statistics."""


def missing_tfdv() -> TfrecregError | None:
    """None where TFDV is installed, else the error that says so and how to get it.

    Without importing it.
    """
    if find_spec("tensorflow_data_validation") is not None:
        return None
    if _release_for(sys.version_info[:2], sys.platform, platform.machine()):
        return MissingExtraError("TensorFlow Data Validation", "tfdv")
    libc = " ".join(platform.libc_ver()).strip()
    here = f"{sys.platform} {platform.machine()}{libc and f' with {libc}'}"
    return FailureError(
        "TensorFlow Data Validation has no release for "
        f"Python {platform.python_version()} on {here}",
        hint="use Python 3.10 or 3.11 on Linux x86-64, or Python 3.12 or 3.13 where glibc is 2.39 "
        "or later (Debian 13, Ubuntu 24.04), or a Mac with Apple silicon: "
        f"{install_command(extra='tfdv')}",
    )


def _release_for(python: tuple[int, ...], system: str, machine: str) -> bool:
    """Whether the extra `tfdv` can be installed: the markers of `pyproject.toml`, and glibc."""
    if (system, machine) == ("linux", "x86_64"):
        if python < (3, 12):
            return True
        name, version = platform.libc_ver()
        new = name == "glibc" and tuple(map(int, version.split(".")[:2])) >= _GLIBC
        return new and python < (3, 14)
    return (system, machine) == ("darwin", "arm64") and python < (3, 14)


@cache
def load_tfdv() -> Tfdv:
    """Import TFDV."""
    missing = missing_tfdv()
    if missing is not None:
        raise missing
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    said = io.StringIO()
    # A million objects come and none goes: looking for garbage among them again and again takes a
    # fifth of the time, and looking once right behind saves the scan the pause.
    collecting = gc.isenabled()
    gc.disable()
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(said),
            _silent_descriptor(),
        ):
            warnings.simplefilter("ignore")
            return _import()
    except ImportError as error:
        raise FailureError(
            f"TensorFlow Data Validation is installed and cannot be imported: {safe(str(error))}",
            hint=f"{install_command(extra='tfdv')} installs a compatible set",
        ) from error
    finally:
        # A library that warns while it is imported leaves a handler on the stream of the moment.
        root.handlers[:] = handlers
        root.setLevel(level)
        if collecting:
            gc.enable()
            gc.collect()


@contextlib.contextmanager
def _silent_descriptor() -> Iterator[None]:
    """Nothing reaches the stream of errors from C++.

    TensorFlow 2.21 and TFDV 1.21 log there before they read the variables that would stop them.
    """
    try:
        kept = os.dup(2)
    except OSError:  # it is closed, so there is nothing to keep silent
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _import() -> Tfdv:
    import tensorflow_data_validation
    from tensorflow_data_validation.api import validation_api

    return Tfdv(api=tensorflow_data_validation, validation=validation_api)


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

"""Versioned, validated TFRecord datasets.

A registry is a folder of datasets. A dataset is built from raw data and released under version
numbers. Training reads a release. TFRecord files that other tools wrote can be checked without a
registry.

Example:
    >>> import tfrecreg as tr
    >>> digits = tr.open("registry")["digits"]
    >>> digits.build(source="mnist", raw="raw/mnist", shards=2)
    <Build digits: 200 train, 60 test records in 4 shards>
    >>> digits.release("1.0.0").data_source("train[:80%]", decode=True)
    <DataSource 160 records of digits@1.0.0>
    >>> tr.check("registry/data/digits").status
    'pass'

The names in ``tfrecreg.__all__`` are the library. Plugins import :mod:`tfrecreg.api`, tests of
plugins import :mod:`tfrecreg.testing`, and users of PyTorch import :mod:`tfrecreg.torch`. See
https://github.com/tfrecreg/tfrecreg/tree/main/docs/python.md for their use. All other modules are
private and may change with any version: `ARCHITECTURE.md` in the repository is their map.

Each name is imported on first use, so ``import tfrecreg`` is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tfrecreg._version import __version__ as __version__

if TYPE_CHECKING:
    from tfrecreg.builtin.training.certificate import Certificate as Certificate
    from tfrecreg.builtin.training.data_source import DataSource as DataSource
    from tfrecreg.builtin.training.load import load as load
    from tfrecreg.builtin.training.mixtures.open import mixture as mixture
    from tfrecreg.builtin.training.mixtures.source import Mixture as Mixture
    from tfrecreg.builtin.training.open import data_source as data_source
    from tfrecreg.builtin.training.order import Order as Order
    from tfrecreg.core.check.reports import Report as Report
    from tfrecreg.core.example.decode import decode as decode
    from tfrecreg.core.example.model import encode as encode
    from tfrecreg.core.example.tensors import parse_tensor as parse_tensor
    from tfrecreg.core.example.tensors import serialize_tensor as serialize_tensor
    from tfrecreg.core.example.values import to_example as to_example
    from tfrecreg.core.plugins.engines import engine as engine
    from tfrecreg.core.records.reading.access import Records as Records
    from tfrecreg.core.records.reading.access import read as read
    from tfrecreg.core.records.writer import TFRecordWriter as TFRecordWriter
    from tfrecreg.core.values.errors import FailureError as FailureError
    from tfrecreg.core.values.errors import NoSuchNameError as NoSuchNameError
    from tfrecreg.core.values.errors import RefusedError as RefusedError
    from tfrecreg.core.values.errors import TfrecregError as TfrecregError
    from tfrecreg.core.values.errors import UsageError as UsageError
    from tfrecreg.core.values.findings import Finding as Finding
    from tfrecreg.library.files import check as check
    from tfrecreg.library.files import diff as diff
    from tfrecreg.library.files import digest as digest
    from tfrecreg.library.files import export as export
    from tfrecreg.library.files import head as head
    from tfrecreg.library.files import query as query
    from tfrecreg.library.files import report as report
    from tfrecreg.library.files import salvage as salvage
    from tfrecreg.library.files import stats as stats
    from tfrecreg.library.registry import Dataset as Dataset
    from tfrecreg.library.registry import Registry as Registry
    from tfrecreg.library.registry import init as init
    from tfrecreg.library.registry import open as open
    from tfrecreg.library.versions import Build as Build
    from tfrecreg.library.versions import Release as Release

_LATER = {
    "tfrecreg.builtin.training.certificate": "Certificate",
    "tfrecreg.builtin.training.data_source": "DataSource",
    "tfrecreg.builtin.training.load": "load",
    "tfrecreg.builtin.training.mixtures.open": "mixture",
    "tfrecreg.builtin.training.mixtures.source": "Mixture",
    "tfrecreg.builtin.training.open": "data_source",
    "tfrecreg.builtin.training.order": "Order",
    "tfrecreg.core.check.reports": "Report",
    "tfrecreg.core.example.decode": "decode",
    "tfrecreg.core.example.model": "encode",
    "tfrecreg.core.example.tensors": "parse_tensor serialize_tensor",
    "tfrecreg.core.example.values": "to_example",
    "tfrecreg.core.plugins.engines": "engine",
    "tfrecreg.core.records.reading.access": "Records read",
    "tfrecreg.core.records.writer": "TFRecordWriter",
    "tfrecreg.core.values.errors": (
        "FailureError NoSuchNameError RefusedError TfrecregError UsageError"
    ),
    "tfrecreg.core.values.findings": "Finding",
    "tfrecreg.library.files": "check diff digest export head query report salvage stats",
    "tfrecreg.library.registry": "Dataset Registry init open",
    "tfrecreg.library.versions": "Build Release",
}
_HOMES = {name: module for module, names in _LATER.items() for name in names.split()}

__all__ = sorted(("__version__", *_HOMES))

if not TYPE_CHECKING:  # mypy takes the names from the imports above

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__

"""Versioned, validated TFRecord datasets.

A registry is a folder of datasets. A dataset is built from raw data and released under version
numbers; training reads a release. Files of any tool are checked without a registry.

Example:
    >>> import tfrecreg as tr
    >>> digits = tr.open("registry")["digits"]
    >>> digits.build(source="mnist", raw="raw/mnist", shards=2)
    <Build digits: 200 train, 60 test records in 4 shards>
    >>> digits.release("1.0.0").data_source("train[:80%]", decode=True)
    <DataSource 160 records of digits@1.0.0>
    >>> tr.check("registry/data/digits").status
    'pass'

The names in ``tfrecreg.__all__`` are the library, plugins import :mod:`tfrecreg.api`, their
tests :mod:`tfrecreg.testing`, and users of PyTorch
:mod:`tfrecreg.torch`; https://github.com/tfrecreg/tfrecreg/tree/main/docs/python.md shows
their use. All other modules are private and may change with any version; `ARCHITECTURE.md` in
the repository says where each thing is.

Everything is imported on first use, so that ``import tfrecreg`` is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tfrecreg._version import __version__

if TYPE_CHECKING:
    from tfrecreg.builtin.training.certificate import Certificate
    from tfrecreg.builtin.training.data_source import DataSource
    from tfrecreg.builtin.training.load import load
    from tfrecreg.builtin.training.mixtures.open import mixture
    from tfrecreg.builtin.training.mixtures.source import Mixture
    from tfrecreg.builtin.training.open import data_source
    from tfrecreg.builtin.training.order import Order
    from tfrecreg.core.check.reports import Report
    from tfrecreg.core.example.decode import decode
    from tfrecreg.core.example.model import encode
    from tfrecreg.core.example.tensors import parse_tensor, serialize_tensor
    from tfrecreg.core.example.values import to_example
    from tfrecreg.core.plugins.engines import open_engine as engine
    from tfrecreg.core.records.reading.access import Records, read
    from tfrecreg.core.records.writer import TFRecordWriter
    from tfrecreg.core.values.errors import (
        FailureError,
        NoSuchNameError,
        RefusedError,
        TfrecregError,
        UsageError,
    )
    from tfrecreg.core.values.findings import Finding
    from tfrecreg.library.dataset import Dataset
    from tfrecreg.library.questions import query
    from tfrecreg.library.records import diff, digest, export, head, salvage, stats
    from tfrecreg.library.registry import Registry, init, open
    from tfrecreg.library.targets import check, report
    from tfrecreg.library.versions import Build, Release

__all__ = [
    "Build",
    "Certificate",
    "DataSource",
    "Dataset",
    "FailureError",
    "Finding",
    "Mixture",
    "NoSuchNameError",
    "Order",
    "Records",
    "RefusedError",
    "Registry",
    "Release",
    "Report",
    "TFRecordWriter",
    "TfrecregError",
    "UsageError",
    "__version__",
    "check",
    "data_source",
    "decode",
    "diff",
    "digest",
    "encode",
    "engine",
    "export",
    "head",
    "init",
    "load",
    "mixture",
    "open",
    "parse_tensor",
    "query",
    "read",
    "report",
    "salvage",
    "serialize_tensor",
    "stats",
    "to_example",
]

_EXPORTS = (
    (
        "tfrecreg.core.values.errors",
        "FailureError NoSuchNameError RefusedError TfrecregError UsageError",
    ),
    ("tfrecreg.core.example.decode", "decode"),
    ("tfrecreg.core.example.model", "encode"),
    ("tfrecreg.core.example.tensors", "parse_tensor serialize_tensor"),
    ("tfrecreg.core.example.values", "to_example"),
    ("tfrecreg.core.values.findings", "Finding"),
    ("tfrecreg.library.dataset", "Dataset"),
    ("tfrecreg.library.records", "diff digest export head salvage stats"),
    ("tfrecreg.library.questions", "query"),
    ("tfrecreg.library.registry", "Registry init open"),
    ("tfrecreg.library.targets", "check report"),
    ("tfrecreg.library.versions", "Build Release"),
    ("tfrecreg.builtin.training.open", "data_source"),
    ("tfrecreg.builtin.training.load", "load"),
    ("tfrecreg.builtin.training.mixtures.open", "mixture"),
    ("tfrecreg.core.plugins.engines", "open_engine"),
    ("tfrecreg.core.records.reading.access", "Records read"),
    ("tfrecreg.core.records.writer", "TFRecordWriter"),
    ("tfrecreg.core.check.reports", "Report"),
    ("tfrecreg.builtin.training.certificate", "Certificate"),
    ("tfrecreg.builtin.training.data_source", "DataSource"),
    ("tfrecreg.builtin.training.mixtures.source", "Mixture"),
    ("tfrecreg.builtin.training.order", "Order"),
)
_HOMES = {name: module for module, names in _EXPORTS for name in names.split()}

_VERBS = {
    **dict.fromkeys(("adopt", "build", "log", "release"), '["mnist"]'),
    **dict.fromkeys(("gate", "pull", "push", "repair", "tag", "yank"), '["mnist@1.0.0"]'),
    **dict.fromkeys(("audit", "gc", "pipeline", "site"), ""),
}
"""Verbs of handles, which many look for here first, and the handles that have them."""

if not TYPE_CHECKING:  # mypy takes the names from the imports above

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            verb = f"tfrecreg.open(){_VERBS[name]}.{name}(…)" if name in _VERBS else ""
            hint = verb and f"; handles have verbs: `{verb}`"
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
        at_home = "open_engine" if name == "engine" else name
        return getattr(import_module(_HOMES[at_home]), at_home)


def __dir__() -> list[str]:
    return __all__

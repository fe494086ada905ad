"""Versioned, validated TFRecord datasets.

The names below are the library; ``docs/python.md`` shows their use. Plugins import
:mod:`tfrecreg.api` instead, and their tests :mod:`tfrecreg.testing`. All other modules are private
and may change with any version:

- values: `errors`, `findings`, `codes`, `gating`, `config`, `reference`, `shards`, `text`; to read
  and write them: `toml_files`, `typed_values`, `amounts`, `suggest`;
  `progress`; and `lazy`, for packages whose names are imported when they are used
- bytes: `storage`, `records`, `example`, `images`, `digests`, `index`
- state: `manifest`, `schema`, `registry`, `tracking`
- work: `statistics`, `training`, `scan`, `engines`
- extension points: `sources`, `validators`, `plugins`; `guard`, through which all their code is
  called; `code_digest`, which identifies it; `testing`, for the tests of plugins
- `operations`: the commands as functions; `pages`: HTML; `cli`: the command line

Everything is imported on first use, so that ``import tfrecreg`` is fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfrecreg._version import __version__
from tfrecreg.lazy import lazy_exports

if TYPE_CHECKING:
    from tfrecreg.amounts import SkipLimit
    from tfrecreg.engines import open_engine
    from tfrecreg.errors import TfrecregError
    from tfrecreg.example import decode, encode
    from tfrecreg.example.tensors import parse_tensor, serialize_tensor
    from tfrecreg.example.values import to_example
    from tfrecreg.gating import FailOn
    from tfrecreg.operations.adopt import AdoptRequest, AdoptResult, adopt
    from tfrecreg.operations.builds import BuildRequest, BuildResult, build
    from tfrecreg.operations.catalog import list_datasets
    from tfrecreg.operations.check import CheckOptions, Report, check
    from tfrecreg.operations.data_source import data_source
    from tfrecreg.operations.describe import describe
    from tfrecreg.operations.diff import DiffResult, diff
    from tfrecreg.operations.digest import ContentDigests, digest
    from tfrecreg.operations.export import export
    from tfrecreg.operations.gate import gate
    from tfrecreg.operations.head import head
    from tfrecreg.operations.init import init
    from tfrecreg.operations.load import load
    from tfrecreg.operations.pipeline import pipeline
    from tfrecreg.operations.release import ReleaseRequest, ReleaseResult, release
    from tfrecreg.operations.remote import gc, pull, push
    from tfrecreg.operations.repair import repair
    from tfrecreg.operations.salvage import salvage
    from tfrecreg.operations.schemas import (
        CompatibilityOptions,
        check_compatibility,
        diff_schemas,
        propose,
    )
    from tfrecreg.operations.stats import stats
    from tfrecreg.operations.tag import TagRequest, tag
    from tfrecreg.pages import PageResult, SiteResult, report, site
    from tfrecreg.records import Records, read
    from tfrecreg.records.tfrecord_writer import TFRecordWriter
    from tfrecreg.registry import Build, Dataset, Registry, Release, open_registry, resolve
    from tfrecreg.shards import ShardPolicy
    from tfrecreg.training import Certificate, DataSource, Order

__all__ = [
    "AdoptRequest",
    "AdoptResult",
    "Build",
    "BuildRequest",
    "BuildResult",
    "Certificate",
    "CheckOptions",
    "CompatibilityOptions",
    "ContentDigests",
    "DataSource",
    "Dataset",
    "DiffResult",
    "FailOn",
    "Order",
    "PageResult",
    "Records",
    "Registry",
    "Release",
    "ReleaseRequest",
    "ReleaseResult",
    "Report",
    "ShardPolicy",
    "SiteResult",
    "SkipLimit",
    "TFRecordWriter",
    "TagRequest",
    "TfrecregError",
    "__version__",
    "adopt",
    "build",
    "check",
    "check_compatibility",
    "data_source",
    "decode",
    "describe",
    "diff",
    "diff_schemas",
    "digest",
    "encode",
    "export",
    "gate",
    "gc",
    "head",
    "init",
    "list_datasets",
    "load",
    "open_engine",
    "open_registry",
    "parse_tensor",
    "pipeline",
    "propose",
    "pull",
    "push",
    "read",
    "release",
    "repair",
    "report",
    "resolve",
    "salvage",
    "serialize_tensor",
    "site",
    "stats",
    "tag",
    "to_example",
]

_EXPORTS = {
    "tfrecreg.amounts": ("SkipLimit",),
    "tfrecreg.engines": ("open_engine",),
    "tfrecreg.errors": ("TfrecregError",),
    "tfrecreg.example": ("decode", "encode"),
    "tfrecreg.example.tensors": ("parse_tensor", "serialize_tensor"),
    "tfrecreg.example.values": ("to_example",),
    "tfrecreg.gating": ("FailOn",),
    "tfrecreg.operations.adopt": ("AdoptRequest", "AdoptResult", "adopt"),
    "tfrecreg.operations.builds": ("BuildRequest", "BuildResult", "build"),
    "tfrecreg.operations.catalog": ("list_datasets",),
    "tfrecreg.operations.check": ("CheckOptions", "Report", "check"),
    "tfrecreg.operations.data_source": ("data_source",),
    "tfrecreg.operations.describe": ("describe",),
    "tfrecreg.operations.diff": ("DiffResult", "diff"),
    "tfrecreg.operations.digest": ("ContentDigests", "digest"),
    "tfrecreg.operations.export": ("export",),
    "tfrecreg.operations.gate": ("gate",),
    "tfrecreg.operations.head": ("head",),
    "tfrecreg.operations.init": ("init",),
    "tfrecreg.operations.load": ("load",),
    "tfrecreg.operations.pipeline": ("pipeline",),
    "tfrecreg.operations.release": ("ReleaseRequest", "ReleaseResult", "release"),
    "tfrecreg.operations.remote": ("gc", "pull", "push"),
    "tfrecreg.operations.repair": ("repair",),
    "tfrecreg.operations.salvage": ("salvage",),
    "tfrecreg.operations.schemas": (
        "CompatibilityOptions",
        "check_compatibility",
        "diff_schemas",
        "propose",
    ),
    "tfrecreg.operations.stats": ("stats",),
    "tfrecreg.operations.tag": ("TagRequest", "tag"),
    "tfrecreg.pages": ("PageResult", "SiteResult", "report", "site"),
    "tfrecreg.records": ("Records", "read"),
    "tfrecreg.records.tfrecord_writer": ("TFRecordWriter",),
    "tfrecreg.registry": (
        "Build",
        "Dataset",
        "Registry",
        "Release",
        "open_registry",
        "resolve",
    ),
    "tfrecreg.shards": ("ShardPolicy",),
    "tfrecreg.training": ("Certificate", "DataSource", "Order"),
}
if not TYPE_CHECKING:  # which knows these names from above, and no others
    __getattr__ = lazy_exports(__name__, _EXPORTS)


def __dir__() -> list[str]:
    return __all__

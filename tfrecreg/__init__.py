"""Versioned, validated TFRecord datasets.

The names below are the library; ``docs/python.md`` shows their use. Plugins import
:mod:`tfrecreg.api` instead, and their tests :mod:`tfrecreg.testing`. All other modules are private
and may change with any version:

- values: `errors`, `findings`, `codes`, `gating`, `config`, `reference`, `shards`, `text`; to read
  and write them: `documents`, `json_data`, `toml_files`, `label_maps`, `typed_values`, `amounts`,
  `suggest`; `install_hint`; `progress`
- bytes: `storage`, `records`, `example`, `images`, `digests`, `index`;
  `decoding`, by which formats come in
- state: `manifest`, `schema`, `registry`, `tracking`
- work: `statistics`, `training`, `scan`, `engines`; `shardset`, which shards are meant
- extension points: `sources`, `validators`, `exporters`, `reports`, `plugins`; `bundled` and
  `entry_points`, where plugins are found; `builtin`, what comes in by them; `guard`, through which
  all their code is called; `code_digest`, which identifies it; `testing`, for the tests of plugins
- `operations`: the commands as functions; `library`: handles with these as verbs; `pages`: HTML;
  `cli`: the command line; `commands`, of which it is made, and `render`, what it prints of results

Everything is imported on first use, so that ``import tfrecreg`` is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tfrecreg._version import __version__

if TYPE_CHECKING:
    from tfrecreg.amounts import SkipLimit
    from tfrecreg.builtin.repair.run import repair
    from tfrecreg.errors import TfrecregError
    from tfrecreg.example.decode import decode
    from tfrecreg.example.encode import encode
    from tfrecreg.example.tensors import parse_tensor, serialize_tensor
    from tfrecreg.example.values import to_example
    from tfrecreg.gating import FailOn
    from tfrecreg.library.dataset import Dataset
    from tfrecreg.library.registry import Registry, init, open, resolve
    from tfrecreg.library.registry import open as open_registry
    from tfrecreg.library.versions import Build, Release
    from tfrecreg.operations.adopt.request import AdoptRequest
    from tfrecreg.operations.adopt.run import AdoptResult, adopt
    from tfrecreg.operations.builds.conclude import BuildResult
    from tfrecreg.operations.builds.data import build
    from tfrecreg.operations.builds.settings import BuildRequest
    from tfrecreg.operations.catalog import list_datasets
    from tfrecreg.operations.check.options import CheckOptions
    from tfrecreg.operations.check.run import check
    from tfrecreg.operations.data_source import data_source
    from tfrecreg.operations.describe import describe
    from tfrecreg.operations.diff.result import DiffResult
    from tfrecreg.operations.diff.run import diff
    from tfrecreg.operations.digest import ContentDigests, digest
    from tfrecreg.operations.export.run import export
    from tfrecreg.operations.gate import gate
    from tfrecreg.operations.head import head
    from tfrecreg.operations.load import load
    from tfrecreg.operations.pipeline.run import pipeline
    from tfrecreg.operations.release import ReleaseRequest, ReleaseResult, release
    from tfrecreg.operations.remote.garbage import gc
    from tfrecreg.operations.remote.sending import push
    from tfrecreg.operations.remote.transfer import pull
    from tfrecreg.operations.salvage.run import salvage
    from tfrecreg.operations.schemas.accept import propose
    from tfrecreg.operations.schemas.compare import (
        CompatibilityOptions,
        check_compatibility,
        diff_schemas,
    )
    from tfrecreg.operations.stats import stats
    from tfrecreg.operations.tag import TagRequest, tag
    from tfrecreg.operations.yank import yank
    from tfrecreg.pages.make import PageResult, report
    from tfrecreg.pages.static_site import SiteResult, site
    from tfrecreg.plugins.engines import open_engine
    from tfrecreg.plugins.engines import open_engine as engine
    from tfrecreg.records.access import Records, read
    from tfrecreg.records.tfrecord_writer import TFRecordWriter
    from tfrecreg.reports.model import Report
    from tfrecreg.shards import ShardPolicy
    from tfrecreg.training.certificate import Certificate
    from tfrecreg.training.data_source import DataSource
    from tfrecreg.training.order import Order

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
    "engine",
    "export",
    "gate",
    "gc",
    "head",
    "init",
    "list_datasets",
    "load",
    "open",
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
    "yank",
]

_EXPORTS = {
    "tfrecreg.amounts": ("SkipLimit",),
    "tfrecreg.plugins.engines": ("open_engine",),
    "tfrecreg.errors": ("TfrecregError",),
    "tfrecreg.example.decode": ("decode",),
    "tfrecreg.example.encode": ("encode",),
    "tfrecreg.example.tensors": ("parse_tensor", "serialize_tensor"),
    "tfrecreg.example.values": ("to_example",),
    "tfrecreg.gating": ("FailOn",),
    "tfrecreg.library.dataset": ("Dataset",),
    "tfrecreg.library.registry": ("Registry", "init", "open", "resolve"),
    "tfrecreg.library.versions": ("Build", "Release"),
    "tfrecreg.operations.adopt.request": ("AdoptRequest",),
    "tfrecreg.operations.adopt.run": ("AdoptResult", "adopt"),
    "tfrecreg.operations.builds.conclude": ("BuildResult",),
    "tfrecreg.operations.builds.settings": ("BuildRequest",),
    "tfrecreg.operations.builds.data": ("build",),
    "tfrecreg.operations.catalog": ("list_datasets",),
    "tfrecreg.operations.check.options": ("CheckOptions",),
    "tfrecreg.reports.model": ("Report",),
    "tfrecreg.operations.check.run": ("check",),
    "tfrecreg.operations.data_source": ("data_source",),
    "tfrecreg.operations.describe": ("describe",),
    "tfrecreg.operations.diff.result": ("DiffResult",),
    "tfrecreg.operations.diff.run": ("diff",),
    "tfrecreg.operations.digest": ("ContentDigests", "digest"),
    "tfrecreg.operations.export.run": ("export",),
    "tfrecreg.operations.gate": ("gate",),
    "tfrecreg.operations.head": ("head",),
    "tfrecreg.operations.load": ("load",),
    "tfrecreg.operations.pipeline.run": ("pipeline",),
    "tfrecreg.operations.release": ("ReleaseRequest", "ReleaseResult", "release"),
    "tfrecreg.operations.remote.garbage": ("gc",),
    "tfrecreg.operations.remote.sending": ("push",),
    "tfrecreg.operations.remote.transfer": ("pull",),
    "tfrecreg.builtin.repair.run": ("repair",),
    "tfrecreg.operations.salvage.run": ("salvage",),
    "tfrecreg.operations.schemas.accept": ("propose",),
    "tfrecreg.operations.schemas.compare": (
        "CompatibilityOptions",
        "check_compatibility",
        "diff_schemas",
    ),
    "tfrecreg.operations.stats": ("stats",),
    "tfrecreg.operations.tag": ("TagRequest", "tag"),
    "tfrecreg.operations.yank": ("yank",),
    "tfrecreg.pages.make": ("PageResult", "report"),
    "tfrecreg.pages.static_site": ("SiteResult", "site"),
    "tfrecreg.records.access": ("Records", "read"),
    "tfrecreg.records.tfrecord_writer": ("TFRecordWriter",),
    "tfrecreg.shards": ("ShardPolicy",),
    "tfrecreg.training.certificate": ("Certificate",),
    "tfrecreg.training.data_source": ("DataSource",),
    "tfrecreg.training.order": ("Order",),
}
_HOMES = {name: module for module, names in _EXPORTS.items() for name in names}
_OTHERWISE = {"open_registry": "open", "engine": "open_engine"}
"""Names that are other ones at home."""

if not TYPE_CHECKING:  # which knows these names from above, and no others

    def __getattr__(name: str) -> Any:
        at_home = _OTHERWISE.get(name, name)
        if at_home not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_HOMES[at_home]), at_home)


def __dir__() -> list[str]:
    return __all__

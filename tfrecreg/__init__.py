"""Versioned, validated TFRecord datasets.

The names below are the library. Plugins import :mod:`tfrecreg.api` instead, and their tests
:mod:`tfrecreg.testing`. For everybody else the map is, from the bottom up:

- values: `errors`, `findings`, `codes`, `gate`, `config`, `reference`, `shards`, `text`; what they
  are read and written by: `toml_files`, `typed_values`, `amounts`, `suggest`; and `progress`
- bytes: `storage`, `records`, `example`, `pictures`, `digests`, `index`
- state: `manifest`, `schema`, `registry`, `tracking`
- work: `statistics`, `scan`, `engines`
- extension points: `sources`, `validators`, `plugins`; `guard`, through which all their code is
  called; `testing`, for the tests of plugins
- `operations`: what the faces call, `cli` and `report`: the faces

Everything is imported when it is first used, so that ``import tfrecreg`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tfrecreg._version import __version__

if TYPE_CHECKING:
    from tfrecreg.errors import TfrecregError
    from tfrecreg.operations.adopt import AdoptRequest, AdoptResult, adopt
    from tfrecreg.operations.builds import BuildRequest, BuildResult, build
    from tfrecreg.operations.check import CheckOptions, Report, check
    from tfrecreg.operations.diff import DiffResult, diff
    from tfrecreg.operations.init import init
    from tfrecreg.operations.load import load
    from tfrecreg.operations.release import ReleaseRequest, ReleaseResult, release
    from tfrecreg.registry import Registry, open_registry, resolve

__all__ = [
    "AdoptRequest",
    "AdoptResult",
    "BuildRequest",
    "BuildResult",
    "CheckOptions",
    "DiffResult",
    "Registry",
    "ReleaseRequest",
    "ReleaseResult",
    "Report",
    "TfrecregError",
    "__version__",
    "adopt",
    "build",
    "check",
    "diff",
    "init",
    "load",
    "open_registry",
    "release",
    "resolve",
]

_HOMES = {
    "AdoptRequest": "tfrecreg.operations.adopt",
    "AdoptResult": "tfrecreg.operations.adopt",
    "BuildRequest": "tfrecreg.operations.builds",
    "BuildResult": "tfrecreg.operations.builds",
    "CheckOptions": "tfrecreg.operations.check",
    "DiffResult": "tfrecreg.operations.diff",
    "Registry": "tfrecreg.registry",
    "ReleaseRequest": "tfrecreg.operations.release",
    "ReleaseResult": "tfrecreg.operations.release",
    "Report": "tfrecreg.operations.check",
    "TfrecregError": "tfrecreg.errors",
    "adopt": "tfrecreg.operations.adopt",
    "build": "tfrecreg.operations.builds",
    "check": "tfrecreg.operations.check",
    "diff": "tfrecreg.operations.diff",
    "init": "tfrecreg.operations.init",
    "load": "tfrecreg.operations.load",
    "open_registry": "tfrecreg.registry",
    "release": "tfrecreg.operations.release",
    "resolve": "tfrecreg.registry",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__

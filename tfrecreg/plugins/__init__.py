"""Plugins: sources and validators that installed distributions announce.

A plugin is an entry point of the group ``tfrecreg``, in any distribution, that implements one of
the hooks. The bundled sources and validators use the same mechanism. Authors of plugins read
``docs/plugins.md`` and import only :mod:`tfrecreg.api`.

- `specs`: the hooks; their docstrings are the tutorial
- `discovery`: from entry points to announced records, each under guard
- `manager`: lookup by name, name clashes, and loading of classes
- `describe`: the options of a plugin, in words

pluggy itself is imported on first use of plugins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfrecreg.lazy import lazy_exports
from tfrecreg.plugins.discovery import Announced, BrokenPlugin, canonical_name
from tfrecreg.plugins.manager import NameClash, Plugins, plugins

if TYPE_CHECKING:
    from tfrecreg.plugins.describe import OptionInfo
    from tfrecreg.plugins.specs import hookimpl

__all__ = [
    "Announced",
    "BrokenPlugin",
    "NameClash",
    "OptionInfo",
    "Plugins",
    "canonical_name",
    "hookimpl",
    "plugins",
]


if not TYPE_CHECKING:  # which knows these names from above, and no others
    __getattr__ = lazy_exports(__name__, {".describe": ("OptionInfo",), ".specs": ("hookimpl",)})

"""Plugins: sources and validators that installed distributions announce.

A plugin is an entry point of the group ``tfrecreg``, in any distribution, that implements one of
the hooks. The bundled sources and validators come in by the same door. Who writes a plugin reads
``docs/plugins.md`` and imports :mod:`tfrecreg.api`, nothing else.

- `specs`: the hooks, their docstrings are the tutorial
- `discovery`: entry points to announced records, each under guard
- `manager`: looking one up by name, clashes, and loading its class
- `describe`: the options of one, for people

pluggy itself is imported when plugins are first asked for.
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

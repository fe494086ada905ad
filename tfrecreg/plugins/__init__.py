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

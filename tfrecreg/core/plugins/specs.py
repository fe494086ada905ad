"""The decorator that marks a plugin's hooks. A hook is a function that announces records.

A plugin is a module with one or more hooks, marked with ``hookimpl``, and an entry point of the
group ``tfrecreg`` that names the module::

    # lines_plugin.py
    from tfrecreg.api import SourceRecord, hookimpl

    @hookimpl
    def tfrecreg_sources():
        yield SourceRecord("lines", "one example a file of text", load_lines)

    def load_lines():
        from lines_source import Lines
        return Lines

    # pyproject.toml
    [project.entry-points.tfrecreg]
    lines = "lines_plugin"

The module is imported whenever plugins are listed, so it stays small: the record's function `load`
does slow imports. A hook yields records, or returns a list of them. The class of its records names
the hook: see `hook` in :mod:`tfrecreg.core.plugins.records`.
"""

from __future__ import annotations

import pluggy

hookimpl = pluggy.HookimplMarker("tfrecreg")
"""Marks a function of a plugin as a hook. The name of the function says which hook it is."""

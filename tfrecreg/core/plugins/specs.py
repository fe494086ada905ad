"""The decorator that marks a plugin's hooks. A hook is a function that announces records.

A plugin needs a module with one or more hooks. It also needs an entry point in the group
``tfrecreg``. The entry point's value is the module's name: see ``docs/plugin-examples.md``. The
module is imported whenever plugins are listed, so keep it small, and do slow imports in the
record's function `load`. A hook's name depends on the class of its records: see `hook` in
:mod:`tfrecreg.core.plugins.records`.
"""

from __future__ import annotations

import pluggy

hookimpl = pluggy.HookimplMarker("tfrecreg")
"""Marks a function of a plugin as a hook. The name of the function is the name of the hook."""

"""Plugins of installed distributions: sources, validators and others.

A plugin implements one of the hooks. Any distribution can declare plugins, as entry points of the
group ``tfrecreg``. Bundled features implement the same hooks. Authors of plugins read
``docs/plugins.md`` and import only :mod:`tfrecreg.api`.
"""

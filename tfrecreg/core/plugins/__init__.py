"""Plugins of installed distributions: sources, validators and others.

A plugin is an entry point of the group ``tfrecreg``, in any distribution, that implements one of
the hooks. Bundled features implement the same hooks. Authors of plugins read ``docs/plugins.md``
and import only :mod:`tfrecreg.api`.
"""

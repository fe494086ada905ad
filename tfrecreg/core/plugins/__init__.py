"""Plugins of installed distributions: sources, validators and others.

A plugin is an entry point of the group ``tfrecreg``, in any distribution, that implements one of
the hooks. What is bundled implements the same hooks. Authors of plugins read
``docs/plugins.md`` and import only :mod:`tfrecreg.api`.

- `records`: one record class for each kind of plugin
- `specs`: the hooks; their docstrings are the tutorial
- `discovery`: from modules to announced records, each under guard
- `manager`: lookup by name, name clashes, and loading
- `decoders`: which decoder reads a value
- `describe`: the options of a plugin, in words
- `engines`: an engine by its name
- `recognition`: why a source can read a folder, and what it may look at to say so
- `raw_data`: the source whose raw data a folder has, by the names of its files

pluggy itself is imported on first use of plugins.
"""

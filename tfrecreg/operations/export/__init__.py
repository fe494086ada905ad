"""Handing a build or a release to other tools, as a folder of its own.

- `run`: the operation: the target, the exporter, the folder
- `guarded`: the exporter of a plugin, called under guard
"""

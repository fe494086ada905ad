"""Handing a build or a release to other tools, as a folder of its own.

- `run`: the operation: the target, the exporter, the folder
- `sending`: the files as they are, to a folder or a store
- `guarded`: the exporter of a plugin, called under guard
"""

"""Builds in parts: the commands of `tfrecreg.operations.builds.parts`.

- `command`: their group, with a module of each
"""

"""Yanks of releases: the command of `tfrecreg.operations.yank`.

- `command`: its arguments
"""

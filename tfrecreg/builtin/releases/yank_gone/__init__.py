"""Yanks of releases: the command of `tfrecreg.builtin.releases.yank`.

- `command`: its arguments
"""

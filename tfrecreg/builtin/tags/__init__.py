"""Tags of releases: the command of `tfrecreg.operations.tag`.

- `command`: its arguments; `printed`: tags, of a yank as well
"""

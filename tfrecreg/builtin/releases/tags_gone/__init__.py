"""Tags of releases: the command of `tfrecreg.builtin.releases.tag`.

- `command`: its arguments; `printed`: tags, of a yank as well
"""

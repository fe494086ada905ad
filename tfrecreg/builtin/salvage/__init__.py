"""Salvage: the command of `tfrecreg.operations.salvage`.

- `command`: its arguments; `printed`: its result
"""

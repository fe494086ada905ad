"""`tfrecreg plugins new`: the package of a plugin that works, to begin with.

- `kinds`: what differs between the kinds of plugins
- `write`: names that fit, and the files
- `command`: the command
- `templates/`: the files, with `$words` to replace
"""

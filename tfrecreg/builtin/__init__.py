"""The features of the project: rooms that come in by the hooks that strangers use.

Each package is a room, and its `plugin` announces what it brings; :mod:`tfrecreg.bundled` names the
module of each `command`.

- `audit`: the command, which checks releases without their bytes
- `engines`: the engines of other libraries, values of ``--engine``
- `explain`: the command, which explains finding codes
- `export`: the exporters, values of ``export --to``
- `images`: the decoder of images
- `parts`: the commands of builds in parts
- `repair`: rebuilding what is lost or damaged, and the command
- `reports`: report formats, values of ``check --format``
- `salvage`: the command, which saves what is undamaged
- `tags`, `yank`: the commands
"""

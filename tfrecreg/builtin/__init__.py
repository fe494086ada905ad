"""The features of the project: rooms that use the same hooks as third-party plugins.

Each package is a room, and its `plugin` announces its features;
:mod:`tfrecreg.core.plugins.bundled` names the module of each `command`.

- `audit`: the command, which checks releases without their bytes
- `derived`: the source of datasets that are made of others
- `engines`: the engines of other libraries, values of ``--engine``
- `explain`: the command, which explains finding codes
- `export`: the exporters, values of ``export --to``
- `images`: the decoder of images
- `changes`: the validator of changes since the version before
- `local_plugins`: plugins in files of a registry, and the command that trusts them
- `new_plugin`: the command that writes the package of a new plugin
- `parts`: the commands of builds in parts
- `query`: questions in SQL over a catalog of the records, and the command
- `repair`: rebuilding lost or damaged files, and the command
- `reports`: report formats, values of ``check --format``
- `salvage`: the command, which saves what is undamaged
- `tags`, `yank`: the commands
- `view`: the viewer of all records in a browser, and the command
"""

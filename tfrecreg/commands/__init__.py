"""What commands are made of, those of the package and those of plugins.

- `session`: the context of a call, with its registry and its output
- `options`: what makes a function a command, and options that several commands share;
  `build_settings`: those that say how a dataset is built
- `lazy_group`: a group whose commands are imported when they are run
- `plugin`: announces the commands of rooms
- `complete`: completion of arguments
- `console`: stdout and stderr; lines, tables and facts for a terminal or a pipe; `progress_bar`
- `report_format`: the values of `--format`; `severities`: of what was found, for the exit code
- `output`: files that were asked for, and JSON
"""

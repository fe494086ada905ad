"""The parts of commands, for the package and for plugins.

- `session`: the context of a call, with its registry and its output
- `options`: decorators of commands, and options that several commands share;
  `build_settings`: those that say how a dataset is built
- `lazy_group`: a group whose commands are imported when they are run
- `plugin`: announces the commands of rooms
- `complete`: completion of arguments
- `console`: stdout and stderr; lines, tables and facts for a terminal or a pipe; `progress_bar`
- `report_format`: the values of `--format`; `severities`: of the findings, for the exit code
- `output`: files that were asked for, and JSON
"""

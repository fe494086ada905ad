"""The command line. The command tree is the file tree: `tfrecreg schema show` is `schema/show.py`.

- `main`: the entry point; errors become one line and an exit code
- `app`: the group of commands, each imported only when it is run
- `render`: the printed results of commands
"""

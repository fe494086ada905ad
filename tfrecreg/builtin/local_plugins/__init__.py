"""Local plugins: Python files in a registry, outside any distribution.

- `find`: from what a configuration or `--source` names to announced records
- `code`: the files of one folder, their digest, and their import as modules
- `trust`: which code this user lets run on this machine
- `loaded`: the package whose modules they are, in any process
- `command`: `tfrecreg plugins trust`
"""

"""Bytes and history outside the registry: DVC and git.

- `dvc`: the only module that imports the `dvc` package, on first use
- `cloud`: folders by DVC's hash: sent to a remote, fetched, and looked for
- `remote_objects`: the objects of a remote, listed and verified without DVC's index
- `cache`: removable objects of DVC's cache
- `git`: queries by the git command, and annotated tags; never commits
- `pointers`: DVC's small files, read without DVC
- `gto`: the names of GTO's tags
"""

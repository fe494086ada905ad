"""Bytes and history outside the registry: DVC and git.

- `dvc`: the only module that imports the `dvc` package, on first use
- `cloud`: folders by DVC's hash: push, fetch, and unreferenced objects
- `git`: queries by the git command, and annotated tags; never commits
- `pointers`: DVC's small files, read without DVC
- `gto`: the names of GTO's tags
"""

from __future__ import annotations

__all__: list[str] = []

"""Where bytes and history live outside the registry: DVC and git.

- `dvc`: the only home of the `dvc` package, which is imported when it is used and never before
- `cloud`: folders by DVC's hash: to a remote and back, and what nobody refers to
- `git`: asking git, by its command, and annotated tags; nothing is ever committed
- `pointers`: what DVC's small files say, read without DVC
- `gto`: the names that GTO gives to tags
"""

from __future__ import annotations

__all__: list[str] = []

"""Where bytes and history live outside the registry: DVC and git.

- `dvc`: the only home of the `dvc` package, which is imported when it is used and never before
- `cloud`: folders by DVC's hash: to a remote and back, and what nobody refers to
- `git`: asking git what is checked out, by its command; nothing is ever committed
"""

from __future__ import annotations

from tfrecreg.tracking import cloud, dvc, git

__all__ = ["cloud", "dvc", "git"]

"""The `manifest` validator: the set of files against the manifest, or against their names.

- `bare_files`: what the names of bare files promise, and what is in them
- `training_hosts`: whether training hosts get their share of the shards
- `validator`: the files of a build byte by byte, and all findings
"""

from __future__ import annotations

__all__: list[str] = []

"""A registry: the folder that holds releases, schemas and builds, as files say it.

- `layout`: where everything lies, as paths relative to the registry's root
- `registry`: opening one, listing it, reading its manifests and schemas
- `lookup`: from a reference to a manifest, a schema and the folder of the bytes
- `stages`: which release is in a stage, by the tags of git
- `schemas`: the schema that a build was made with, whatever was written into it since
- `absence`: what is not here, and the command that brings it
- `transaction`: the only place that changes what is published; `verify` compares bytes with a
  manifest, `output_folder` makes folders of the user's
- `indexes`: the indexes of builds and releases
- `yanks`: releases that were withdrawn
- `audit`: whether releases still are what was released, and follow each other
- `chain`, `history`: how they do, by themselves and by git
- `lock`: keeping two commands from doing the same work
"""

from __future__ import annotations

from tfrecreg.registry.lookup import Resolved, expect_dataset, resolve
from tfrecreg.registry.registry import Registry, find_registry, open_registry

__all__ = [
    "Registry",
    "Resolved",
    "expect_dataset",
    "find_registry",
    "open_registry",
    "resolve",
]

"""Verified copies of shards behind a URL: in the user's cache, for readers that take paths.

A copy is a folder in ``tfrecreg/remote`` below `XDG_CACHE_HOME` or ``~/.cache``, named by the
digest of the manifest. A file appears there when its digest is that of the manifest, so one that is
there is not fetched again. Nothing removes them: the folder may be deleted at any time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from blake3 import blake3

from tfrecreg.errors import UsageError
from tfrecreg.manifest.model import MANIFEST_NAME, SCHEMA_NAME
from tfrecreg.registry.verify import copy_verified
from tfrecreg.storage.local import LocalStorage, user_cache

if TYPE_CHECKING:  # what reads records comes with it, and who only copies needs none of it
    from tfrecreg.operations.split_target import SplitTarget


def local_copy(target: SplitTarget) -> SplitTarget:
    """The same shards with their indexes and the schema, as local files.

    Args:
        target: of a build behind a URL.

    Raises:
        UsageError: this user has no folder for caches.
        RefusedError: a file is not what the manifest names.
    """
    remote, manifest = target.storage, target.manifest
    assert remote is not None
    assert manifest is not None
    cache = user_cache()
    if cache is None:
        raise UsageError(
            f"`{target.name}` is copied before it is loaded, and there is no folder for it",
            hint="set `HOME` or `XDG_CACHE_HOME`",
        )
    name = blake3(remote.read(MANIFEST_NAME)).hexdigest(16)
    local = LocalStorage(f"{cache.root}/tfrecreg/remote/{name}")
    files = {each.path: each for each in manifest.files}
    for shard in target.shards:
        assert shard.entry is not None
        copy_verified(remote, local, shard.entry)
        index = files.get(shard.entry.index)
        if index is not None:
            copy_verified(remote, local, index)
    if SCHEMA_NAME in files:
        copy_verified(remote, local, files[SCHEMA_NAME])
    shards = [replace(shard, storage=local) for shard in target.shards]
    return target._replace(shards=shards, storage=local)

"""Verified copies of shards behind a URL: in the user's cache, for readers that take paths.

A copy is a folder in ``tfrecreg/remote`` below `XDG_CACHE_HOME` or ``~/.cache``, named by the
digest of the manifest. A file appears there when its digest is that of the manifest, so one that is
there is not fetched again. Nothing removes them: the folder may be deleted at any time.
"""

from __future__ import annotations

from collections.abc import Sequence

from blake3 import blake3

from tfrecreg.core.registry.history.verify import copy_verified
from tfrecreg.core.registry.manifest.model import MANIFEST_NAME, SCHEMA_NAME, Manifest, ShardEntry
from tfrecreg.core.storage.interface import Readable
from tfrecreg.core.storage.local import LocalStorage, user_cache
from tfrecreg.core.values.errors import UsageError


def local_copy(
    name: str, manifest: Manifest, remote: Readable, shards: Sequence[ShardEntry]
) -> LocalStorage:
    """A local copy of a build's shards behind a URL, with their indexes and the schema."""
    cache = user_cache()
    if cache is None:
        raise UsageError(
            f"`{name}` is copied before it is loaded, and there is no folder for it",
            hint="set `HOME` or `XDG_CACHE_HOME`",
        )
    folder = blake3(remote.read(MANIFEST_NAME)).hexdigest(16)
    local = LocalStorage(f"{cache.root}/tfrecreg/remote/{folder}")
    files = {each.path: each for each in manifest.files}
    for shard in shards:
        copy_verified(remote, local, shard)
        index = files.get(shard.index)
        if index is not None:
            copy_verified(remote, local, index)
    if SCHEMA_NAME in files:
        copy_verified(remote, local, files[SCHEMA_NAME])
    return local

"""The only door to bytes on disk. Local files now, other file systems later.

A storage is bound to a root; every path handed to it is relative, POSIX, and stays below that
root. So a name from data cannot reach outside, and manifests and storages speak the same paths.

`interface` says what a storage can do, `local` does it with POSIX files: `reader` and `writer`
are one file each, open; `renames` moves folders; `flock` is a lock on a file; `paths` checks names
and words the errors. `links` lists what lies behind symbolic links.
"""

from __future__ import annotations

from tfrecreg.storage.interface import Entry, Reader, Storage, Writer
from tfrecreg.storage.links import list_through_links
from tfrecreg.storage.local import LocalStorage, user_cache
from tfrecreg.storage.writer import is_temporary

__all__ = [
    "Entry",
    "LocalStorage",
    "Reader",
    "Storage",
    "Writer",
    "is_temporary",
    "list_through_links",
    "user_cache",
]

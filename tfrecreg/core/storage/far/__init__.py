"""A cache on disk, with a limit, of files behind URLs: pieces of them, shared by processes.

:mod:`~tfrecreg.core.storage.block_cache` has the files of the cache,
:mod:`~tfrecreg.core.storage.far_files` reads files of a store through it. `staging` holds what
is fetched and not kept, and `ahead` requests what a sequence reads next.
"""

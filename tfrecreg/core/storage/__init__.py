"""The only access to files: local ones, and those behind URLs, which are never replaced.

A storage is bound to a root; every path passed to it is relative, POSIX, and stays below that root.
So a name from data cannot lead outside, and manifests and storages use the same paths.

`interface` defines the protocols, `local` implements them with POSIX files, `remote` with URLs;
`raw` chooses the storage of a location, and `far` keeps pieces of remote files on disk.
"""

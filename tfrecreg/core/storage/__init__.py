"""All access to files goes through this package. It never replaces files behind URLs.

A storage has a root. It takes only relative POSIX paths that stay below its root. So a file name
that comes from data cannot lead outside the root, and the paths in a manifest can be used as they
are.

`interface` defines what a storage can do. `local` implements it for POSIX files, `remote` and
`listed` implement it for URLs. Module `raw` chooses the storage for a place and joins paths to a
root. Module `words` finds the files that a user names. Module `far_files` keeps pieces of remote
files on disk. Code that needs an absolute path calls `local_path`; no other code asks where bytes
are.
"""

"""All access to files goes through this package. It never replaces files behind URLs.

A storage has a root. Every path passed to it is relative and POSIX and stays below that root. So a
name in data cannot lead outside the root, and a path in a manifest is a path in the storage.

`interface` defines what a storage can do. `local` implements it for POSIX files, `remote` and
`listed` implement it for URLs. Module `raw` chooses the storage for a place and joins paths to a
root. Module `words` finds the files that a user names. Module `far_files` keeps pieces of remote
files on disk. Code that needs an absolute path calls `local_path`; no other code asks where bytes
are.
"""

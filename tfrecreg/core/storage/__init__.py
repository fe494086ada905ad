"""The only access to files: local ones, and those behind URLs, which are never replaced.

A storage is bound to a root; every path passed to it is relative, POSIX, and stays below that root.
So a name from data cannot lead outside, and manifests and storages use the same paths.

`interface` defines the protocols, `local` implements all of them with POSIX files: `reader` and
`writer` are open files; `renames` moves folders; `flock` locks files; `paths` checks names and
words the errors. `links` lists the targets of symbolic links.

`urls` takes URLs apart, `remote` implements operations on them, with `remote_reader` as open files,
`uploads` for new ones, and `file_systems` as the only home of fsspec. `raw` is for raw data,
`listed` for those behind URLs; `read_ahead` fetches whole objects before they are asked for;
`local_copy` has files that are read at many places, `file_object` is a file of a storage for
libraries that want one of Python. `looks` keeps what a store said of its files for a short while.
`daemon_threads` sends requests, `far` keeps pieces on disk. `locations` chooses the storage of a
location.
"""

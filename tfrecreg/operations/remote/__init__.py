"""Releases in DVC's remotes, and what may be removed.

- `keeper`: DVC as the keeper of the bytes of releases
- `sending`: send the bytes of releases to a remote, and look for each object there
- `transfer`: pull them into `versions/`, verified
- `releases`: the folders that DVC keeps of releases
- `garbage`: remove what nothing refers to
- `bucket_folders`: builds in buckets that nothing refers to
"""

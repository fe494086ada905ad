"""Releases in DVC's remotes, and removal of unreferenced files.

- `keeper`: DVC as the keeper of the bytes of releases
- `sending`: send the bytes of releases to a remote, and look for each object there
- `transfer`: pull them into `versions/`, verified
- `releases`: the folders that DVC keeps of releases
- `garbage`: removal of unreferenced files
"""

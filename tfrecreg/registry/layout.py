"""Where everything lies in a registry: paths relative to its root, POSIX."""

from __future__ import annotations

from tfrecreg.reference import Version

__all__ = [
    "BUILDS",
    "IGNORES",
    "IGNORE_ALL",
    "INDEXES",
    "RELEASES",
    "SCHEMA_NAME",
    "STAGE",
    "STATE",
    "VERSIONS",
    "build_folder",
    "build_record",
    "cached_index",
    "lock_path",
    "release_folder",
    "schema_path",
    "stage_folder",
    "version_folder",
]

BUILDS = "data"
"""Builds: `data/<name>/`, one fixed path a dataset."""
RELEASES = "registry"
"""Releases: `registry/<name>/<version>/`, small, in git, immutable."""
VERSIONS = "versions"
"""Bytes of releases brought back on demand, ignored by git."""
STATE = ".tfrecreg"
"""What belongs to this machine alone; ignores itself."""
STAGE = f"{STATE}/stage"
INDEXES = f"{STATE}/cache/index"
"""Copies of indexes of releases."""
IGNORE_ALL = b"*\n"
"""An ignore file of git or DVC that ignores its whole folder, itself among it."""
IGNORES = tuple(
    f"{folder}/{name}" for folder in (VERSIONS, STATE) for name in (".gitignore", ".dvcignore")
)
"""Where such files are. They never change, so branches never meet in one."""
SCHEMA_NAME = "schema.pbtxt"
"""The schema in a release's folder."""


def build_folder(dataset: str) -> str:
    """The build of `dataset`."""
    return f"{BUILDS}/{dataset}"


def release_folder(dataset: str, version: Version) -> str:
    """The release's manifest and schema."""
    return f"{RELEASES}/{dataset}/{version}"


def version_folder(dataset: str, version: Version) -> str:
    """The release's bytes, where they are not the build."""
    return f"{VERSIONS}/{dataset}/{version}"


def schema_path(dataset: str) -> str:
    """The working contract of `dataset`, unless the configuration names another file."""
    return f"schemas/{dataset}.pbtxt"


def stage_folder(dataset: str, plan: str) -> str:
    """Where a build with this plan grows until it is whole."""
    return f"{STAGE}/{dataset}/{plan}"


def build_record(dataset: str) -> str:
    """What this machine remembers of the last build: when, from where, in what state."""
    return f"{STATE}/builds/{dataset}.json"


def cached_index(digest: str) -> str:
    """A copy of the index file whose blake3 this is: releases stay comparable."""
    return f"{INDEXES}/{digest[:2]}/{digest[2:]}"


def lock_path(dataset: str) -> str:
    """The lock that keeps two commands from doing the same work."""
    return f"{STATE}/locks/{dataset}"

"""Locations of files in a registry: paths relative to its root, POSIX."""

from __future__ import annotations

from tfrecreg.core.values.reference import Version

BUILDS = "data"
"""Builds: `data/<name>/`, one fixed path a dataset."""
DATASETS = "datasets"
"""Settings of each dataset: `datasets/<name>.toml`, in git."""
RELEASES = "registry"
"""Releases: `registry/<name>/<version>/`, small, in git, immutable."""
REPORTS = "reports"
"""Reports of a pipeline: `reports/<name>/`, small, in git."""
VERSIONS = "versions"
"""Bytes of releases restored on demand, ignored by git."""
STATE = ".tfrecreg"
"""State of this machine only; ignored by git."""
STAGE = f"{STATE}/stage"
CHECKS = f"{STATE}/cache/checks"
"""Cached results of checks, one file per shard."""
INDEXES = f"{STATE}/cache/index"
"""Copies of indexes of releases."""
IGNORE_ALL = b"*\n"
"""An ignore file of git or DVC that ignores its whole folder, itself among it."""
IGNORES = tuple(
    f"{folder}/{name}" for folder in (VERSIONS, STATE) for name in (".gitignore", ".dvcignore")
)
"""Paths of such files. They never change, so they never conflict between branches."""
EVERYTHING = ".registry"
"""The name of the lock that everybody who changes something shares; no dataset's name begins with
a dot."""
YANKS_SUFFIX = ".yanks.jsonl"
"""Suffix of the file beside a release's folder that holds its yanks."""
ATTRIBUTES = f"{RELEASES}/.gitattributes"
"""What git must know of the files below `registry/`."""
ATTRIBUTE_LINES = (b"* -text", f"*{YANKS_SUFFIX} merge=union".encode())
"""Lines of that file, always the same, so that branches never conflict: git converts no line ends,
which would break the digests of releases, and a merge keeps the yanks of both branches."""


def build_folder(dataset: str) -> str:
    """The build of `dataset`."""
    return f"{BUILDS}/{dataset}"


def dataset_path(dataset: str) -> str:
    """Settings of `dataset`: its source, raw data and owner."""
    return f"{DATASETS}/{dataset}.toml"


def release_folder(dataset: str, version: Version) -> str:
    """The release's manifest and schema."""
    return f"{RELEASES}/{dataset}/{version}"


def yanks_path(dataset: str, version: Version) -> str:
    """Why a release was yanked: beside its folder, which never changes."""
    return f"{release_folder(dataset, version)}{YANKS_SUFFIX}"


def version_folder(dataset: str, version: Version) -> str:
    """The release's bytes, where they are not the build."""
    return f"{VERSIONS}/{dataset}/{version}"


def schema_path(dataset: str) -> str:
    """The working contract of `dataset`, unless the configuration names another file."""
    return f"schemas/{dataset}.pbtxt"


def reports_folder(dataset: str) -> str:
    """What a pipeline keeps of `dataset` beside the data."""
    return f"{REPORTS}/{dataset}"


def report_path(dataset: str) -> str:
    """What a pipeline's check measured of `dataset`: the JSON of `check`."""
    return f"{reports_folder(dataset)}/check.json"


def stage_folder(dataset: str) -> str:
    """The folder in which files of a dataset are staged until they are published."""
    return f"{STAGE}/{dataset}"


def build_record(dataset: str) -> str:
    """A local note on the last build: time, folder and state of the raw data."""
    return f"{STATE}/builds/{dataset}.json"


def cached_index(digest: str) -> str:
    """A copy of the index file whose blake3 this is: releases stay comparable."""
    return f"{INDEXES}/{digest[:2]}/{digest[2:]}"


def cached_schema(digest: str) -> str:
    """A copy of the schema with this blake3, to compare the schemas of builds."""
    return f"{STATE}/cache/schemas/{digest}.pbtxt"


def cached_statistics(content: str, made_by: str) -> str:
    """The statistics of the split with this content digest; `made_by` distinguishes options."""
    return f"{STATE}/cache/statistics/{content}-{made_by}"


def lock_path(dataset: str) -> str:
    """The lock that keeps two commands from doing the same work."""
    return f"{STATE}/locks/{dataset}"

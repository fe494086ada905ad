"""Locations of files in a registry: paths relative to its root, POSIX."""

from __future__ import annotations

from tfrecreg.core.values.reference import Version

BUILDS = "data"
"""Builds: `data/<name>/`, one fixed path per dataset."""
DATASETS = "datasets"
"""Settings of each dataset: `datasets/<name>.toml`, in git."""
RELEASES = "registry"
"""Releases: `registry/<name>/<version>/`, small, in git, immutable."""
REPORTS = "reports"
"""Reports of a pipeline: `reports/<name>/`, small, in git."""
VERSIONS = "versions"
"""Bytes of releases that were restored on demand; ignored by git."""
STATE = ".tfrecreg"
"""State that belongs to this machine only; ignored by git."""
STAGE = f"{STATE}/stage"
CHECKS = f"{STATE}/cache/checks"
"""Cached results of checks, one file per shard."""
INDEXES = f"{STATE}/cache/index"
"""Copies of the indexes of releases."""
IGNORE_ALL = b"*\n"
"""An ignore file for git or DVC that ignores its whole folder, including itself."""
IGNORES = tuple(
    f"{folder}/{name}" for folder in (VERSIONS, STATE) for name in (".gitignore", ".dvcignore")
)
"""Paths of the ignore files. Their content never changes, so branches never conflict in them."""
EVERYTHING = ".registry"
"""The name of the lock that every change of the registry shares. No dataset's name begins with a
dot."""
YANKS_SUFFIX = ".yanks.jsonl"
"""Suffix of the file next to a release's folder that holds its yanks."""
ATTRIBUTES = f"{RELEASES}/.gitattributes"
"""Git's attributes for the files below `registry/`."""
ATTRIBUTE_LINES = (b"* -text", f"*{YANKS_SUFFIX} merge=union".encode())
"""The lines of :data:`ATTRIBUTES`, which never change, so branches never conflict in them. They
keep git from converting line ends, which digests of releases cover, and a merge keeps all yanks.
"""


def build_folder(dataset: str) -> str:
    return f"{BUILDS}/{dataset}"


def dataset_path(dataset: str) -> str:
    """The file with settings of `dataset`: its source, raw data and owner."""
    return f"{DATASETS}/{dataset}.toml"


def release_folder(dataset: str, version: Version) -> str:
    """The folder with the release's manifest and schema."""
    return f"{RELEASES}/{dataset}/{version}"


def yanks_path(dataset: str, version: Version) -> str:
    """The file with a release's yanks. It is not in the release's folder, which never changes."""
    return f"{release_folder(dataset, version)}{YANKS_SUFFIX}"


def version_folder(dataset: str, version: Version) -> str:
    """The folder with the release's bytes, if they are not in the build."""
    return f"{VERSIONS}/{dataset}/{version}"


def schema_path(dataset: str) -> str:
    """The default path of the working schema; the configuration may name another file."""
    return f"schemas/{dataset}.pbtxt"


def reports_folder(dataset: str) -> str:
    """The folder with the files that a pipeline writes about `dataset`, except the data."""
    return f"{REPORTS}/{dataset}"


def report_path(dataset: str) -> str:
    """The file in which a pipeline stores what `check` measured in `dataset`, as JSON."""
    return f"{reports_folder(dataset)}/check.json"


def stage_folder(dataset: str) -> str:
    """The folder in which files of a dataset are staged until they are published."""
    return f"{STAGE}/{dataset}"


def build_record(dataset: str) -> str:
    """This machine's note on the last build: its time, and the folder and state of its raw data."""
    return f"{STATE}/builds/{dataset}.json"


def cached_index(digest: str) -> str:
    """The copy of an index, for comparisons of releases. `digest` is the blake3 of the index."""
    return f"{INDEXES}/{digest[:2]}/{digest[2:]}"


def cached_schema(digest: str) -> str:
    """The copy of a schema, for comparisons of schemas. `digest` is the blake3 of the schema."""
    return f"{STATE}/cache/schemas/{digest}.pbtxt"


def cached_statistics(content: str, made_by: str) -> str:
    """The statistics of the split with this content digest; `made_by` is the options' digest."""
    return f"{STATE}/cache/statistics/{content}-{made_by}"


def lock_path(dataset: str) -> str:
    """The lock that prevents two commands from doing the same work."""
    return f"{STATE}/locks/{dataset}"

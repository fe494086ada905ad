"""The fields of a manifest. Frozen, typed, and with a word on who keeps each of them true.

The same classes serve a build's ``data/<name>/manifest.json`` (no `release`, no `provenance`) and
a release's ``registry/<name>/<version>/manifest.json``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tfrecreg.records import FileDigest, Written

FORMAT_VERSION = 1
"""Format of the manifest. A reader refuses a greater one; fields are never reused with a new
meaning.
"""

MANIFEST_NAME = "manifest.json"
LABELS_NAME = "labels.json"
LEDGER_NAME = "ledger.jsonl"
INDEX_FOLDER = "index"
"""Names in the folder of a build, beside its shards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """One file of the build that is no shard: an index, the labels, the ledger."""

    path: str
    """Relative to the build's folder, POSIX."""
    bytes: int
    blake3: str
    """Hex digest of the file; what `check` verifies."""
    sha256: str
    """Hex digest of the file, for other tools."""

    @classmethod
    def of(cls, path: str, file: FileDigest) -> FileEntry:
        """The entry of a file at `path` with this size and these digests."""
        return cls(path=path, bytes=file.bytes, blake3=file.blake3, sha256=file.sha256)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardEntry:
    """One shard file."""

    path: str
    """Relative to the build's folder, POSIX."""
    bytes: int
    blake3: str
    sha256: str
    split: str
    records: int
    payload_bytes: int
    """Bytes of all payloads, framing and compression taken off."""
    stream_blake3: str
    """Hex digest of the decompressed stream: equal shards stay equal whatever the encoder."""
    index: str
    """Path of the shard's index in the build's folder; empty where there is none."""

    @classmethod
    def of(cls, path: str, shard: Written, *, split: str, index: str) -> ShardEntry:
        """The entry of a shard that was written to `path`, with its index at `index`."""
        return cls(
            path=path,
            bytes=shard.file.bytes,
            blake3=shard.file.blake3,
            sha256=shard.file.sha256,
            split=split,
            records=shard.records,
            payload_bytes=shard.payload_bytes,
            stream_blake3=shard.stream_blake3,
            index=index,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitEntry:
    """One split: what :func:`tfrecreg.digests.content_digest` says of it alone."""

    name: str
    records: int
    payload_bytes: int
    content: str
    """Hex content digest of this split alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RawTotals:
    """The raw data that the build was made from: the bases of size inflation."""

    files: int
    stored: int
    """Bytes as they lie."""
    decoded: int
    """Bytes with whole-file compression taken off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """What became of every item. `items` = `written` + the sum of `skipped`; a build that does
    not reconcile fails. The full list of what was skipped is the build's ledger file.
    """

    items: int
    written: int
    skipped: dict[str, int] = field(default_factory=dict)
    """``SRC`` code to count."""
    remarks: dict[str, int] = field(default_factory=dict)
    """``SRC`` code to count of parts of items that were clipped, left out or passed over: boxes,
    masks, files that nothing names. They take no part in the sum above.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceEntry:
    """What made the build."""

    name: str
    """Name of the source: ``mnist``."""
    distribution: str
    """The Python distribution that the plugin came from."""
    version: str
    """Version of that distribution."""
    options: dict[str, str] = field(default_factory=dict)
    """The options as ``--option`` takes them, defaults included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaEntry:
    """The schema that the build was validated against."""

    blake3: str
    """Hex digest of the schema file's bytes."""
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Parent:
    """A release that this one, or this build, comes from."""

    version: str
    digest: str
    """Digest of the parent's manifest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeCounts:
    """What changed since the parent, in numbers of examples and of shards."""

    added: int
    removed: int
    changed: int
    """The same split and key, another record."""
    moved: int
    """To another split, changed on the way or not."""
    renamed: int
    """The same record in the same split, under another key."""
    shards_kept: int
    """Files of this release that the parent has, too."""
    shards_new: int
    """All others of its files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What the release is against its parent, by the rule of numbers."""

    level: Literal["initial", "patch", "minor", "major"]
    """The smallest legal one."""
    reasons: list[str] = field(default_factory=list)
    counts: ChangeCounts | None = None
    """None, and not in the file, for a first release, and where an index that would tell was not
    on the machine that released it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseEntry:
    """What a release adds to the build's manifest."""

    version: str
    """MAJOR.MINOR.PATCH."""
    build: str
    """Digest of the build's own manifest, which the bytes carry in their folder."""
    parent: Parent | None = None
    change: Change = Change(level="initial")
    dvc: str | None = None
    """DVC's hash of the folder (``....dir``), where DVC tracks it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Time, people and places. No digest covers it, so nothing depends on it."""

    created: str
    """UTC, ISO 8601 to the second."""
    by: str
    host: str
    tfrecreg: str
    """Version of this package."""
    python: str
    note: str = ""
    commit: str = ""
    """git commit that was checked out; empty outside git."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What one build or release is."""

    format_version: int
    dataset: str
    content: str
    """Hex content digest over all splits: the same examples in the same splits, or not."""
    splits: list[SplitEntry]
    """In order of name."""
    shards: list[ShardEntry]
    """In order of split and number."""
    files: list[FileEntry]
    """Every other file of the build but the manifest itself, in order of path."""
    raw: RawTotals
    ledger: dict[str, Ledger]
    """By split."""
    features: dict[str, int]
    """Feature name to the bytes of its values (wire form) over all records."""
    labels: dict[str, list[str]]
    """Feature name to class names in order of their numbers."""
    source: SourceEntry
    """Called ``adopt`` where another tool wrote the shards: see `tfrecreg.manifest.adopted`."""
    schema: SchemaEntry
    compression: Literal["none", "gzip"]
    codecs: dict[str, str]
    """Encoders that had a say in the bytes, with their versions: ``{"zlib": "1.3"}``."""
    base: Parent | None = None
    """The release that the build grew from, whose shards it kept where nothing in them changed;
    None, and not in the file, where all of it was shuffled afresh."""
    release: ReleaseEntry | None = None
    salvaged: str | None = None
    """blake3 of the report of the salvage that the shards came from; None, and not in the file,
    where they are nobody's remains."""
    provenance: Provenance | None = None
    digest: str = ""
    """blake3 over the canonical JSON of everything but `digest` and `provenance`."""

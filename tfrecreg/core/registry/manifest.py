"""The manifest: the JSON that describes one build or release and its files.

One set of classes describes both builds (``data/<name>/manifest.json``, without `release` and
`provenance`) and releases (``registry/<name>/<version>/manifest.json``).

The source of an adopted build is ``adopt``. Its option `payloads` is the kind of the payloads, and
its option `key` is the feature with the keys of records. The source of a build from a program's
data is ``python``. Its option `keys` says where the keys come from: ``position``, ``function`` or
``feature NAME``.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from blake3 import blake3

from tfrecreg.core.plugins.bundled import OURS
from tfrecreg.core.storage.interface import Readable
from tfrecreg.core.values.documents import (
    canonical_json,
    known_format,
    refusing,
    strict_json,
)
from tfrecreg.core.values.errors import ManifestError, MissingFileError, StorageError
from tfrecreg.core.values.text import count, safe

if TYPE_CHECKING:
    from tfrecreg.core.example.kinds import PayloadKind
    from tfrecreg.core.records.hashing import FileDigest
    from tfrecreg.core.records.writer import WrittenShard

FORMAT_VERSION = 1
"""Format of the manifest. A reader refuses a higher number. No field ever gets a new meaning."""

MANIFEST_NAME = "manifest.json"
LABELS_NAME = "labels.json"
LEDGER_NAME = "ledger.jsonl"
SCHEMA_NAME = "schema.pbtxt"
INDEX_FOLDER = "index"
"""Names in a build's folder. A release's folder has the manifest and the schema."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """One file of the build: an index, the labels, the ledger, the schema, or a shard."""

    path: str
    """Relative to the build's folder, POSIX."""
    bytes: int
    blake3: str
    """Hex digest of the file, which `check` verifies."""
    sha256: str
    """Hex digest of the file, for other tools."""

    @classmethod
    def of(cls, path: str, file: FileDigest) -> FileEntry:
        return cls(path=path, bytes=file.bytes, blake3=file.blake3, sha256=file.sha256)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardEntry(FileEntry):
    """One shard file."""

    split: str
    records: int
    payload_bytes: int
    """Size of all payloads in bytes, without framing and compression."""
    stream_blake3: str
    """Hex blake3 of the decompressed stream. It does not depend on the encoder."""
    index: str
    """Path of the shard's index, relative to the build's folder; empty if the shard has no index.
    """

    @classmethod
    def of(  # type: ignore[override]
        cls, path: str, shard: WrittenShard, *, split: str, index: str
    ) -> ShardEntry:
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
    """One split, with its own content digest."""

    name: str
    records: int
    payload_bytes: int
    content: str
    """Hex content digest of this split: :func:`tfrecreg.core.records.hashing.content_digest`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RawTotals:
    """Sizes of the raw data that the build was made from, for the limits on inflation."""

    files: int
    stored: int
    """Size of the stored files in bytes."""
    decoded: int
    """Size in bytes without the compression of files that are compressed as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """How many items of one split had each outcome. `items` is `written` plus the sum of `skipped`.
    The build's ledger file lists all skipped items.
    """

    items: int
    written: int
    skipped: dict[str, int] = field(default_factory=dict)
    """Number of skipped items by ``SRC`` code."""
    remarks: dict[str, int] = field(default_factory=dict)
    """How many parts of items were clipped, left out or ignored, for each ``SRC`` code. A part is a
    box, a mask, or a file without an annotation, for example. Remarks are not in the sum above.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceEntry:
    """The source that made the build."""

    name: str
    """Name of the source: ``mnist``."""
    distribution: str
    """The Python distribution of the plugin; for a local plugin, its file."""
    version: str
    """Version of that distribution; for a local plugin, the digest of its code."""
    options: dict[str, str] = field(default_factory=dict)
    """The options, defaults included, in the form that ``--option`` accepts."""

    @property
    def plugin(self) -> str:
        """The source in the form that ``--source`` accepts."""
        is_local = self.distribution.startswith("./")
        return f"{self.distribution}:{self.name}" if is_local else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaEntry:
    """The schema that the build was validated against."""

    blake3: str
    """Hex digest of the schema file's bytes."""
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Parent:
    """A release that this release or build comes from."""

    version: str
    digest: str
    """Digest of the parent's manifest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParentVersion:
    """A build or release of another dataset. This build was made from the parent's records."""

    reference: str
    """``street@2.1.0`` for a release, ``street`` for a build."""
    digest: str
    """Digest of the parent's manifest."""
    content: str
    """The parent's content digest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeCounts:
    """A comparison with the parent: numbers of changed examples, kept shards and new shards."""

    added: int
    removed: int
    changed: int
    """Examples whose record changed, while split and key stayed the same."""
    moved: int
    """Examples that moved to another split. Their records may have changed as well."""
    renamed: int
    """Examples with the same record and split but another key."""
    shards_kept: int
    """Shards of this release that are also in the parent."""
    shards_new: int
    """All other shards of this release."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The change from the parent to the release."""

    level: Literal["initial", "patch", "minor", "major"]
    """The lowest level that the rule allows."""
    reasons: list[str] = field(default_factory=list)
    counts: ChangeCounts | None = None
    """None if this is the first release, or if the machine that made the release lacked an index.
    The file then lacks the field.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseEntry:
    """The fields that a release adds to the build's manifest."""

    version: str
    """MAJOR.MINOR.PATCH."""
    build: str
    """Digest of the build's own manifest, which is in the folder with the bytes."""
    parent: Parent | None = None
    change: Change = Change(level="initial")
    dvc: str | None = None
    """DVC's hash of the build's folder (``....dir``); None if DVC does not track it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """When, where and by whom the release was made. The digests do not cover these facts."""

    created: str
    """UTC, ISO 8601 to the second."""
    by: str
    host: str
    tfrecreg: str
    """Version of this package."""
    python: str
    note: str = ""
    commit: str = ""
    """The checked-out git commit; empty outside git."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The description of one build or release."""

    format_version: int
    dataset: str
    content: str
    """Hex content digest over all splits. Builds with the same examples in the same splits have
    equal content digests.
    """
    splits: list[SplitEntry]
    """In order of name."""
    shards: list[ShardEntry]
    """In order of split and number."""
    files: list[FileEntry]
    """All other files of the build except the manifest itself, in order of path."""
    raw: RawTotals
    ledger: dict[str, Ledger]
    """The outcome of all items, by split."""
    features: dict[str, int]
    """For each feature, the total size in bytes of its serialized values in all records."""
    labels: dict[str, list[str]]
    """For each feature that has them, the class names in order of their numbers."""
    source: SourceEntry
    """The source. Its name is ``adopt`` if another tool wrote the shards."""
    schema: SchemaEntry
    compression: Literal["none", "gzip"]
    codecs: dict[str, str]
    """Encoders that affect the bytes, with their versions: ``{"zlib": "1.3"}``."""
    base: Parent | None = None
    """The release whose unchanged shards the build kept. None if all examples were shuffled again.
    The file then lacks the field.
    """
    parents: list[ParentVersion] = field(default_factory=list)
    """The parents of a derived dataset; not in the file if there are none."""
    release: ReleaseEntry | None = None
    salvaged: str | None = None
    """blake3 of the report of `salvage` for the shards. None if the shards were not salvaged. The
    file then lacks the field.
    """
    provenance: Provenance | None = None
    digest: str = ""
    """blake3 of the canonical JSON of everything except `digest` and `provenance`."""

    @property
    def totals(self) -> tuple[int, int]:
        """The number of records, and the size of all shards in bytes."""
        records = sum(split.records for split in self.splits)
        return records, sum(shard.bytes for shard in self.shards)

    @property
    def entries(self) -> dict[str, FileEntry]:
        """Every file of the build except the manifest itself, by path."""
        return {each.path: each for each in (*self.shards, *self.files)}


PYTHON = "python"
KEYS = "keys"
BUILD_AGAIN = "run the program that calls `build(data=…)`"


def is_python_data(manifest: Manifest) -> bool:
    """Whether a program passed the data of this build or release to the function `build`."""
    return (manifest.source.name, manifest.source.distribution) == (PYTHON, OURS)


ADOPT = "adopt"
PAYLOADS = "payloads"
KEY = "key"


def is_adopted(manifest: Manifest) -> bool:
    """Whether another tool wrote the shards of this build or release."""
    return (manifest.source.name, manifest.source.distribution) == (ADOPT, OURS)


def remake_command(manifest: Manifest) -> str:
    """The command that repeats the build, or a hint to run the program that passed the data."""
    if is_python_data(manifest):
        return BUILD_AGAIN
    if is_adopted(manifest):
        return f"tfrecreg adopt {manifest.dataset} --in-place"
    return f"tfrecreg build {manifest.dataset}"


def adopted_kind(manifest: Manifest | None) -> PayloadKind:
    """The kind of payloads that the manifest names; Examples if it names none."""
    from tfrecreg.core.example.kinds import PayloadKind  # commands that read no record need none

    if manifest is None or not is_adopted(manifest):
        return PayloadKind.EXAMPLE
    said = manifest.source.options.get(PAYLOADS)
    return next((kind for kind in PayloadKind if kind.value == said), PayloadKind.EXAMPLE)


SALVAGE_NAME = "salvage.json"

SALVAGE_KIND = "tfrecreg-salvage"
"""The `kind` in the report, which distinguishes the report from other files of the same name."""

SALVAGE_FORMAT = 1


@dataclass(frozen=True, slots=True)
class SalvageMark:
    """The salvage report about the shards in its folder."""

    digest: str
    changed: Mapping[str, str] = field(default_factory=dict)
    """The blake3 of each shard that differs from its original, by file name. The mapping is empty
    if the only damage is missing shards.
    """
    lost: Mapping[str, str] = field(default_factory=dict)
    broken: str = ""
    """Why the report cannot be parsed; empty if it can be parsed. If the report cannot be parsed,
    any shard of the folder may have been salvaged.
    """


def read_mark(storage: Readable, folder: str) -> SalvageMark | None:
    """The mark of the folder; None if its shards were not salvaged.

    Even a damaged or unreadable report marks its folder, so that salvaged shards never pass for
    undamaged ones. Other JSON files of the same name are no marks.
    """
    path = f"{folder}/{SALVAGE_NAME}" if folder else SALVAGE_NAME
    try:
        data = storage.read(path)
    except MissingFileError:
        return None
    except StorageError as error:
        return SalvageMark("", broken=error.message)
    digest = blake3(data).hexdigest()
    try:
        found = strict_json(data)
    except ValueError as error:
        return SalvageMark(digest, broken=str(error))
    if not isinstance(found, dict) or found.get("kind") != SALVAGE_KIND:
        return None
    if found.get("format_version") != SALVAGE_FORMAT:
        return SalvageMark(digest, broken=f"its format is not {SALVAGE_FORMAT}")
    return _mark(digest, found)


def _mark(digest: str, found: Mapping[str, Any]) -> SalvageMark | None:
    changed: dict[str, str] = {}
    lost: dict[str, str] = {}
    try:
        for shard in found["shards"]:
            clean = shard["clean"]
            if clean is None or shard["status"] == "sound":
                continue
            changed[str(shard["name"])] = str(clean["blake3"])
            least = "" if shard["exact"] else "at least "
            records = int(shard["lost"])
            noun = "record" if records == 1 else "records"
            lost[str(shard["name"])] = f"{least}{records} {noun} lost"
        damaged = bool(found["damaged"])
    except (KeyError, TypeError, ValueError) as error:
        return SalvageMark(digest, broken=f"it is incomplete ({error!r})")
    return SalvageMark(digest, changed, lost) if changed or damaged else None


_HINT = "restore the file from git or DVC, or make the build again"


def seal(manifest: Manifest) -> Manifest:
    """The same manifest with its digest."""
    with _writing(manifest):
        return replace(manifest, digest=_digest(_plain(manifest)))


def render_manifest(manifest: Manifest) -> bytes:
    """The content of the manifest's file: canonical JSON and a newline."""
    with _writing(manifest):
        return canonical_json(_plain(manifest)) + b"\n"


def parse_manifest(data: bytes, where: str) -> Manifest:
    """Parse a manifest's file and check its digest.

    The digest covers the file's content, including fields that this package does not know.
    """
    unchanged = _parse_sealed(data)
    if unchanged is not None:
        return unchanged
    shown = safe(where)
    with refusing(ManifestError, f"`{shown}` is not a manifest", hint=_HINT):
        found = known_format(strict_json(data), FORMAT_VERSION, f"`{shown}` has manifest format")
        manifest = msgspec.convert(found, Manifest)
        expected = _digest(found)
    if manifest.digest != expected:
        raise ManifestError(
            f"`{shown}` was changed after it was sealed: its digest should be "
            f"`{expected[:16]}…`, found `{manifest.digest[:16]}…`",
            hint=_HINT,
        )
    return manifest


_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_MANIFEST = msgspec.json.Decoder(Manifest)
_APART = ("digest", "provenance")
"""Fields that the digest does not cover."""


def _parse_sealed(data: bytes) -> Manifest | None:
    """Parse a manifest that equals the sealed manifest in every byte; None for any other file.

    The members that the digest covers are joined and hashed. If the JSON is canonical, the digest
    was made from exactly these bytes. This is much faster than making canonical JSON again.
    """
    try:
        members = _MEMBERS.decode(data)
        manifest = _MANIFEST.decode(data)
    except (ValueError, RecursionError):
        return None
    texts = {name: b'"%b":%b' % (name.encode(), bytes(raw)) for name, raw in members.items()}
    covered = b",".join(text for name, text in texts.items() if name not in _APART)
    is_sealed = (
        b"{%b}\n" % b",".join(texts.values()) == data  # no white space, no member twice
        and blake3(b"{%b}" % covered).hexdigest() == manifest.digest
        and manifest.format_version == FORMAT_VERSION
    )
    return manifest if is_sealed else None


_OWN_FIELDS = ("compression", "content", "dataset", "digest", "format_version", "stream_blake3")
"""Fields of every manifest. A file of another tool rarely has three of these fields."""


def is_own_manifest(data: bytes) -> bool:
    """Whether a file named `manifest.json` was written by this package. The file may be damaged.

    Other tools use the same file name. An empty file counts as a damaged manifest.
    """
    fields = sum(f'"{name}"'.encode() in data for name in _OWN_FIELDS)
    return fields >= 3 or not data.strip(b"\0 \t\r\n")


def build_digest(data: bytes) -> str:
    """The digest of a build's manifest, computed from the manifest of the build's release. The
    fields that the release adds are left out. Fields that this package does not know are included.
    """
    plain: dict[str, Any] = strict_json(data)
    plain.pop("release", None)
    return _digest(plain)


def _digest(plain: dict[str, Any]) -> str:
    covered = {name: plain[name] for name in plain if name not in _APART}
    return blake3(canonical_json(covered)).hexdigest()


def _plain(manifest: Manifest) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(manifest)
    for name in ("base", "parents", "release", "salvaged", "provenance"):
        if not plain[name]:
            del plain[name]
    release = plain.get("release")
    if release is not None and release["change"]["counts"] is None:
        del release["change"]["counts"]
    for ledger in plain["ledger"].values():
        if not ledger["remarks"]:
            del ledger["remarks"]  # manifests that are older than remarks lack the field
    return plain


def _writing(manifest: Manifest) -> AbstractContextManager[None]:
    return refusing(ManifestError, f"the manifest of `{safe(manifest.dataset)}` cannot be written")


def build_manifest(manifest: Manifest) -> Manifest:
    """The manifest of the build, without the fields that the manifest of the release adds."""
    if manifest.release is None:
        return manifest
    found = seal(replace(manifest, release=None, provenance=None))
    if found.digest != manifest.release.build:
        raise ManifestError(
            f"the release `{manifest.dataset}@{manifest.release.version}` does not match its "
            "build: the digest of the build's manifest differs",
        )
    return found


def change_line(name: str, records: int, change: Change, parent: str | None) -> str:
    """The line on the change since `parent`: ``signs 2.0.0 (major after 1.1.0): 4 labels …``."""
    if parent is None:
        return f"{name} (the first): {count(records, 'record')}"
    reasons = "; ".join(safe(each, limit=300) for each in change.reasons)
    return f"{name} ({change.level} after {safe(parent)}): {reasons or 'no reason is known'}"

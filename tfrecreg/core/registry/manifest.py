"""The manifest: the JSON that describes one build or release, and its bytes.

The same classes serve a build's ``data/<name>/manifest.json`` (no `release`, no `provenance`) and
a release's ``registry/<name>/<version>/manifest.json``.

How a manifest records that another tool wrote the shards: by its source.

The source of an adopted build is called ``adopt``. Its options describe the shards: `payloads` is
the kind of their payloads, and `key` the feature with the keys of records, if the user named one.

How a manifest records that the records were made of a program's data: by its source.

The source of a build with `build(data=…)` is called ``python``. Its option `keys` says
where the keys come from: ``position``, ``function``, or ``feature NAME``.

The mark of a salvaged set: the report beside shards that were salvaged from damaged ones.

`tfrecreg salvage` writes ``salvage.json`` as the last file of its folder. Commands that read the
shards there (`check`, `adopt`) call :func:`read_mark` to detect that they were salvaged.

The size of a build or release, from its manifest, in a fraction of the time of parsing it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
from blake3 import blake3

from tfrecreg.core.example.kinds import PayloadKind
from tfrecreg.core.plugins.bundled import OURS
from tfrecreg.core.storage.interface import Readable
from tfrecreg.core.values.documents import (
    canonical_json,
    digest_apart,
    known_format,
    refusing,
    strict_json,
)
from tfrecreg.core.values.errors import ManifestError, MissingFileError, StorageError
from tfrecreg.core.values.text import count, safe

if TYPE_CHECKING:
    from tfrecreg.core.records.hashing import FileDigest
    from tfrecreg.core.records.writer import WrittenShard

FORMAT_VERSION = 1
"""Format of the manifest. A reader refuses a greater one; fields are never reused with a new
meaning.
"""

MANIFEST_NAME = "manifest.json"
LABELS_NAME = "labels.json"
LEDGER_NAME = "ledger.jsonl"
SCHEMA_NAME = "schema.pbtxt"
INDEX_FOLDER = "index"
"""Names in the folder of a build, beside its shards; those of manifest and schema also in that of a
release.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """One file of the build that is not a shard: an index, the labels, the ledger, the schema."""

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
    """Size of all payloads in bytes, without framing and compression."""
    stream_blake3: str
    """Hex digest of the decompressed stream, which does not depend on the encoder."""
    index: str
    """Path of the shard's index in the build's folder; empty if there is none."""

    @classmethod
    def of(cls, path: str, shard: WrittenShard, *, split: str, index: str) -> ShardEntry:
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
    """One split, with its own content digest."""

    name: str
    records: int
    payload_bytes: int
    content: str
    """Hex content digest of this split alone: see
    :func:`tfrecreg.core.records.hashing.content_digest`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RawTotals:
    """The raw data that the build was made from: the bases of size inflation."""

    files: int
    stored: int
    """Size of the stored files in bytes."""
    decoded: int
    """Size in bytes without whole-file compression."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """The outcome of all items. `items` = `written` + the sum of `skipped`; otherwise the build
    fails. The build's ledger file has the full list of skipped items.
    """

    items: int
    written: int
    skipped: dict[str, int] = field(default_factory=dict)
    """Number of skipped items by ``SRC`` code."""
    remarks: dict[str, int] = field(default_factory=dict)
    """Number, by ``SRC`` code, of parts of items that were clipped, left out or ignored: boxes,
    masks, files without an annotation. They do not count in the sum above.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceEntry:
    """The source that made the build."""

    name: str
    """Name of the source: ``mnist``."""
    distribution: str
    """The Python distribution that the plugin came from; of a local plugin its file."""
    version: str
    """Version of that distribution; of a local plugin the digest of its code."""
    options: dict[str, str] = field(default_factory=dict)
    """The options as ``--option`` takes them, defaults included."""

    @property
    def plugin(self) -> str:
        """The word for the source, as ``--source`` takes it."""
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
    """A release that this one, or this build, comes from."""

    version: str
    digest: str
    """Digest of the parent's manifest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParentVersion:
    """A version of another dataset, from whose records a build was made."""

    reference: str
    """``street@2.1.0``; ``street`` for a build."""
    digest: str
    """Digest of its manifest."""
    content: str
    """Its content digest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeCounts:
    """What changed since the parent, in numbers of examples and of shards."""

    added: int
    removed: int
    changed: int
    """Examples with the same split and key, and another record."""
    moved: int
    """Examples in another split, changed or not."""
    renamed: int
    """Examples with the same record in the same split, under another key."""
    shards_kept: int
    """Shards of this release that the parent also has."""
    shards_new: int
    """All other shards of this release."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The change from the parent to the release, by the rule for version numbers."""

    level: Literal["initial", "patch", "minor", "major"]
    """The smallest legal level."""
    reasons: list[str] = field(default_factory=list)
    counts: ChangeCounts | None = None
    """None, and not in the file, for a first release, and if an index needed for the counts was not
    on the machine that released it.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseEntry:
    """The fields that a release adds to the build's manifest."""

    version: str
    """MAJOR.MINOR.PATCH."""
    build: str
    """Digest of the build's own manifest, which is in the folder of the bytes."""
    parent: Parent | None = None
    change: Change = Change(level="initial")
    dvc: str | None = None
    """DVC's hash of the folder (``....dir``), if DVC tracks it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Time, people and places. Not covered by digests."""

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
    """Hex content digest over all splits: equal for the same examples in the same splits."""
    splits: list[SplitEntry]
    """In order of name."""
    shards: list[ShardEntry]
    """In order of split and number."""
    files: list[FileEntry]
    """All other files of the build except the manifest itself, in order of path."""
    raw: RawTotals
    ledger: dict[str, Ledger]
    """By split."""
    features: dict[str, int]
    """Size in bytes of the values (wire form) over all records, by feature name."""
    labels: dict[str, list[str]]
    """Class names in order of their numbers, by feature name."""
    source: SourceEntry
    """The source; called ``adopt`` if another tool wrote the shards: see
    `tfrecreg.core.registry.manifest`.
    """
    schema: SchemaEntry
    compression: Literal["none", "gzip"]
    codecs: dict[str, str]
    """Encoders that affect the bytes, with their versions: ``{"zlib": "1.3"}``."""
    base: Parent | None = None
    """The release that the build is based on, whose unchanged shards it kept; None, and not in the
    file, if all examples were shuffled again.
    """
    parents: list[ParentVersion] = field(default_factory=list)
    """Of a derived dataset; not in the file if there are none."""
    release: ReleaseEntry | None = None
    salvaged: str | None = None
    """blake3 of the report of the salvage that the shards came from; None, and not in the file, if
    they were not salvaged.
    """
    provenance: Provenance | None = None
    digest: str = ""
    """blake3 over the canonical JSON of everything but `digest` and `provenance`."""

    @property
    def entries(self) -> dict[str, ShardEntry | FileEntry]:
        """Every file of the build but the manifest itself, by path."""
        entries: list[ShardEntry | FileEntry] = [*self.shards, *self.files]
        return {each.path: each for each in entries}


PYTHON = "python"
"""The name of the source, which is not a plugin."""
KEYS = "keys"
"""The option for the origin of the keys."""
BUILD_AGAIN = "run the program that calls `build(data=…)`"
"""What makes such a build again, for hints."""


def is_python_data(manifest: Manifest) -> bool:
    """Whether a program handed the data of this build or release to `build`."""
    return (manifest.source.name, manifest.source.distribution) == (PYTHON, OURS)


ADOPT = "adopt"
"""The name of the source, which is not a plugin."""
PAYLOADS = "payloads"
"""The option for the kind of the payloads: the value of a :class:`PayloadKind`."""
KEY = "key"
"""The option that names the feature whose value is the key of a record."""

DISTRIBUTION = "tfrecreg"
"""The distribution of the source. It does not refer to a plugin."""


def is_adopted(manifest: Manifest) -> bool:
    """Whether another tool wrote the shards of this build or release."""
    return (manifest.source.name, manifest.source.distribution) == (ADOPT, DISTRIBUTION)


def remake_command(manifest: Manifest) -> str:
    """What creates the build again, for instance after a change of its schema: a command, or a
    program.
    """
    if is_python_data(manifest):
        return BUILD_AGAIN
    if is_adopted(manifest):
        return f"tfrecreg adopt {manifest.dataset} --in-place"
    return f"tfrecreg build {manifest.dataset}"


def adopted_kind(manifest: Manifest | None) -> PayloadKind:
    """The kind of the payloads, by the manifest; Examples by default."""
    if manifest is None or not is_adopted(manifest):
        return PayloadKind.EXAMPLE
    said = manifest.source.options.get(PAYLOADS)
    return next((kind for kind in PayloadKind if kind.value == said), PayloadKind.EXAMPLE)


SALVAGE_NAME = "salvage.json"
"""The report's name, in the folder that a salvage wrote."""

SALVAGE_KIND = "tfrecreg-salvage"
"""The value of the report's `kind`, which distinguishes it from other files of that name."""

SALVAGE_FORMAT = 1
"""The report's `format_version`."""


@dataclass(frozen=True, slots=True)
class SalvageMark:
    """The report of a salvage on the shards in its folder."""

    digest: str
    """blake3 of the report's bytes, as hex; empty if they cannot be read."""
    changed: Mapping[str, str] = field(default_factory=dict)
    """The shards that are not whole originals: file name to blake3 of the clean file. May be empty
    if the only damage is missing shards.
    """
    lost: Mapping[str, str] = field(default_factory=dict)
    """The loss of each of them, in a few words."""
    broken: str = ""
    """Why the report cannot be parsed; empty if it can. If it cannot, every shard of the folder may
    be a salvaged one.
    """

    def covers(self, name: str, digest: str | None = None) -> bool:
        """Whether the shard `name` of the folder is a salvaged one."""
        return bool(self.broken) or name in self.changed or digest in self.changed.values()


def read_mark(storage: Readable, folder: str) -> SalvageMark | None:
    """The mark of the folder; None if it is not a salvaged set.

    A report that is damaged, unreadable or of a newer format still marks its folder: salvaged
    shards must not pass for sound ones. Another JSON file of the same name is not a mark.
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
    """The manifest with the digest that covers it."""
    return replace(manifest, digest=manifest_digest(manifest))


def manifest_digest(manifest: Manifest) -> str:
    """blake3, as hex, over the canonical JSON of all but `digest` and `provenance`."""
    with _writing(manifest):
        return _digest(_plain(manifest))


def render_manifest(manifest: Manifest) -> bytes:
    """The manifest's file: canonical JSON and a newline."""
    with _writing(manifest):
        return canonical_json(_plain(manifest)) + b"\n"


def parse_manifest(data: bytes, where: str) -> Manifest:
    """Read a manifest's file and check its own digest.

    The digest covers the content of the file, including fields that this package does not know.
    """
    shown = safe(where)
    with refusing(ManifestError, f"`{shown}` is not a manifest", hint=_HINT):
        found = known_format(strict_json(data), FORMAT_VERSION, f"`{shown}` has manifest format")
        manifest = msgspec.convert(found, Manifest)
        expected = _digest(found)
    if manifest.digest != expected:
        raise ManifestError(
            f"`{shown}` was changed after it was sealed: its digest should be "
            f"`{expected[:16]}…`, found `{safe(manifest.digest[:16])}…`",
            hint=_HINT,
        )
    return manifest


_OWN_FIELDS = ("compression", "content", "dataset", "digest", "format_version", "stream_blake3")
"""Fields of every manifest. Few other formats have three of them."""


def is_own_manifest(data: bytes) -> bool:
    """Whether a file named `manifest.json` was written by this package, intact or damaged.

    Other tools have files of that name. A file without any content is a damaged one.
    """
    fields = sum(f'"{name}"'.encode() in data for name in _OWN_FIELDS)
    return fields >= 3 or not data.strip(b"\0 \t\r\n")


def build_digest(data: bytes) -> str:
    """The digest of the build's own manifest, from the manifest of its release.

    The manifest of a release has all fields of its build's manifest, and more: these are removed
    again, and fields that this package does not know are kept.
    """
    plain = strict_json(data)
    if not isinstance(plain, dict):
        raise ValueError("it is not a JSON object")
    plain.pop("release", None)
    return _digest(plain)


def _digest(plain: dict[str, Any]) -> str:
    return digest_apart(plain, "digest", "provenance")


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
            del ledger["remarks"]  # as in manifests of versions without remarks
    return plain


def _writing(manifest: Manifest) -> AbstractContextManager[None]:
    return refusing(
        ManifestError,
        f"the manifest of `{safe(manifest.dataset)}` cannot be written",
        hint="names of files, labels and features have to be UTF-8: rename those that are not",
    )


def build_manifest(manifest: Manifest) -> Manifest:
    """The manifest beside the bytes: that of a release extends its build's."""
    if manifest.release is None:
        return manifest
    found = seal(replace(manifest, release=None, provenance=None))
    if found.digest != manifest.release.build:
        raise ManifestError(
            f"the release `{manifest.dataset}@{manifest.release.version}` does not match its "
            "build: the digest of the build's manifest differs",
            hint="restore its manifest from git",
        )
    return found


class Totals(NamedTuple):
    """Sums over a manifest."""

    records: int
    bytes: int
    """Size of the shards in bytes."""


class _Split(msgspec.Struct):
    records: int


class _Shard(msgspec.Struct):
    bytes: int


class _Release(msgspec.Struct):
    version: str


class _Part(msgspec.Struct):
    """The fields of :class:`Manifest` that are read."""

    format_version: int
    dataset: str
    digest: str
    splits: list[_Split]
    shards: list[_Shard]
    release: _Release


_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_PART = msgspec.json.Decoder(_Part)


def totals_of(manifest: Manifest) -> Totals:
    """The sums of a parsed manifest."""
    return Totals(
        records=sum(split.records for split in manifest.splits),
        bytes=sum(shard.bytes for shard in manifest.shards),
    )


def quick_totals(data: bytes, dataset: str, version: str) -> Totals | None:
    """The sums of a release whose manifest is unchanged since it was sealed.

    The digest is compared with that of the members that it covers, joined again: if the file is
    canonical JSON, these are the bytes that the digest was computed from.
    """
    try:
        members = _MEMBERS.decode(data)
        part = _PART.decode(data)
    except (ValueError, RecursionError):
        return None
    whole = [b'"%b":%b' % (name.encode(), bytes(raw)) for name, raw in members.items()]
    covered = [
        text
        for name, text in zip(members, whole, strict=True)
        if name not in ("digest", "provenance")
    ]
    if (
        b"{%b}\n" % b",".join(whole) != data  # white space, or a duplicate member
        or blake3(b"{%b}" % b",".join(covered)).hexdigest() != part.digest
        or part.format_version != FORMAT_VERSION
        or (part.dataset, part.release.version) != (dataset, version)
    ):
        return None
    return Totals(
        records=sum(split.records for split in part.splits),
        bytes=sum(shard.bytes for shard in part.shards),
    )


def change_line(name: str, records: int, change: Change, parent: str | None) -> str:
    """``signs 2.0.0 (major after 1.1.0): 413 labels changed; …``, the change since `parent`."""
    if parent is None:
        return f"{name} (the first): {count(records, 'record')}"
    reasons = "; ".join(safe(each, limit=300) for each in change.reasons)
    return f"{name} ({change.level} after {safe(parent)}): {reasons or 'no reason is known'}"

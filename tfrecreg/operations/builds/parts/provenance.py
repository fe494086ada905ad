"""The receipts of a build, kept with it and with its release."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from tfrecreg.documents import read_note, refusing
from tfrecreg.errors import ManifestError, TfrecregError
from tfrecreg.manifest.model import Manifest
from tfrecreg.operations.builds.parts.lines import json_line
from tfrecreg.operations.builds.parts.plan_model import PlanDocument
from tfrecreg.operations.builds.parts.receipts import Receipt, parse_receipt
from tfrecreg.registry import layout
from tfrecreg.registry.lookup import Release, Resolved
from tfrecreg.registry.registry import Registry

_FORMAT = 1
_LIMIT = 1 << 30
"""Largest file, and largest text in it, that is read, in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildProvenance:
    """How a build was made in parts."""

    plan: dict[str, Any]
    """What `plan.json` says, without the list of shards."""
    verified: list[str]
    """Shards that were made again and compared before the build was published."""
    receipts: list[Receipt]
    """In the order of the shards of the manifest."""


class _Head(msgspec.Struct, frozen=True):
    """The first line of the file; a receipt is each of the others."""

    format_version: int
    manifest: str
    """Digest of the manifest of the build."""
    plan: dict[str, Any]
    verified: list[str]


def keep_receipts(
    registry: Registry,
    manifest: Manifest,
    plan: PlanDocument,
    receipts: Sequence[Receipt],
    *,
    verified: Sequence[str],
) -> None:
    """Keep the receipts of a build that was just published, beside the note on the build.

    A release takes them over.
    """
    document = msgspec.to_builtins(plan)
    del document["shards"]
    head = _Head(_FORMAT, manifest.digest, document, list(verified))
    lines = [json_line(msgspec.to_builtins(each)) for each in (head, *receipts)]
    with registry.storage.create(layout.build_receipts(manifest.dataset)) as writer:
        writer.write(gzip.compress(b"".join(lines), mtime=0))


def receipts_file(registry: Registry, build: Manifest) -> bytes | None:
    """The file with the receipts of a build, for its release; None if it was not made in parts.

    Raises:
        StorageError: it cannot be read.
    """
    path = layout.build_receipts(build.dataset)
    if registry.storage.stat(path) is None:
        return None
    data = registry.storage.read(path, limit=_LIMIT)
    try:
        return data if _parsed(data)[0].manifest == build.digest else None
    except ValueError:
        return None  # a damaged note says as much as none


def read_provenance(resolved: Resolved) -> BuildProvenance | None:
    """The receipts of a build or a release, which fit its manifest; None if it has none.

    Raises:
        ManifestError: the receipts of a release are damaged, or of other shards.
        StorageError: they cannot be read.
    """
    manifest = resolved.manifest
    if isinstance(resolved, Release):
        path = layout.release_receipts(manifest.dataset, resolved.version)
        if resolved.registry.storage.stat(path) is None:
            return None
        data = resolved.registry.storage.read(path, limit=_LIMIT)
        digest = manifest.release.build if manifest.release is not None else ""
        return _fitting(data, path, manifest, digest)
    try:
        found = receipts_file(resolved.registry, manifest)
    except TfrecregError:
        return None
    path = layout.build_receipts(manifest.dataset)
    return None if found is None else _fitting(found, path, manifest, manifest.digest)


def _fitting(data: bytes, path: str, manifest: Manifest, digest: str) -> BuildProvenance:
    complaint = f"the receipts in `{path}` cannot be used"
    with refusing(ManifestError, complaint, hint="restore the file from git"):
        head, lines = _parsed(data)
        if (head.format_version, head.manifest) != (_FORMAT, digest):
            raise ValueError("they are of another build")
        receipts = list(map(parse_receipt, lines))
        named = [replace(each.shard, sha256="") for each in receipts]
        if named != [replace(entry, sha256="") for entry in manifest.shards]:
            raise ValueError("they name other shards than the manifest")
        return BuildProvenance(plan=head.plan, verified=head.verified, receipts=receipts)


def _parsed(data: bytes) -> tuple[_Head, list[bytes]]:
    """The head, and the lines of the receipts.

    Raises:
        ValueError: it is not such a file.
    """
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
            text = packed.read(_LIMIT + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"it is not a gzip file: {error}") from None
    if len(text) > _LIMIT:
        raise ValueError(f"it has more than {_LIMIT} bytes")
    head, *lines = text.splitlines() or [b""]
    return read_note(head, _Head), lines

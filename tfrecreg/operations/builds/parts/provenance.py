"""The receipts of a build, kept with it and with its release."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from tfrecreg.documents import read_note, refusing
from tfrecreg.errors import ManifestError, TfrecregError
from tfrecreg.manifest.model import Manifest
from tfrecreg.operations.builds.parts.lines import json_line
from tfrecreg.operations.builds.parts.plan_model import PlanDocument
from tfrecreg.operations.builds.parts.receipt_model import Receipt, parse_receipt
from tfrecreg.registry import layout
from tfrecreg.registry.lookup import Release, Resolved
from tfrecreg.registry.receipts import RECEIPTS_LIMIT, lines_of, receipts_of
from tfrecreg.registry.registry import Registry

_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildProvenance:
    """How a build was made in parts."""

    plan: dict[str, Any]
    """The contents of `plan.json`, without the list of shards."""
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


def read_provenance(resolved: Resolved) -> BuildProvenance | None:
    """The receipts of a build or a release, which fit its manifest; None if it has none.

    Raises:
        ManifestError: the receipts of a release are damaged, or of other shards.
    """
    manifest = resolved.manifest
    if isinstance(resolved, Release):
        path = layout.release_receipts(manifest.dataset, resolved.version)
        if resolved.registry.storage.stat(path) is None:
            return None
        data = resolved.registry.storage.read(path, limit=RECEIPTS_LIMIT)
        digest = manifest.release.build if manifest.release is not None else ""
        return _fitting(data, path, manifest, digest)
    try:
        found = receipts_of(resolved.registry, manifest)
    except TfrecregError:
        return None
    path = layout.build_receipts(manifest.dataset)
    return None if found is None else _fitting(found, path, manifest, manifest.digest)


def _fitting(data: bytes, path: str, manifest: Manifest, digest: str) -> BuildProvenance:
    complaint = f"the receipts in `{path}` cannot be used"
    with refusing(ManifestError, complaint, hint="restore the file from git"):
        first, *lines = lines_of(data)
        head = read_note(first, _Head)
        if (head.format_version, head.manifest) != (_FORMAT, digest):
            raise ValueError("they are of another build")
        receipts = list(map(parse_receipt, lines))
        named = [replace(each.shard, sha256="") for each in receipts]
        if named != [replace(entry, sha256="") for entry in manifest.shards]:
            raise ValueError("they name other shards than the manifest")
        return BuildProvenance(plan=head.plan, verified=head.verified, receipts=receipts)

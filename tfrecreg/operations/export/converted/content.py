"""The content digest of what was written, and the file that says it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tfrecreg.digests import ContentHasher
from tfrecreg.errors import FailureError
from tfrecreg.manifest.model import Manifest
from tfrecreg.operations.export.shards import BroughtShard
from tfrecreg.storage.interface import Storage

DESCRIPTION_NAME = "tfrecreg.json"
_FORMAT_VERSION = 1


def require_equal_content(manifest: Manifest, name: str, brought: Sequence[BroughtShard]) -> str:
    """Make sure that the records that were written are those of the manifest.

    Args:
        manifest: of the build or release.
        name: its reference.
        brought: the converted shards, with the digests of what was read from the folder.

    Returns:
        The content digest, computed from these digests.

    Raises:
        FailureError: it is another one.
    """
    hasher = ContentHasher()
    for split in manifest.splits:
        hasher.add(split.name, b"")  # a split without records counts, too
    for each in brought:
        hasher.add(each.entry.split, each.digests)
    found = hasher.hexdigest()
    if found != manifest.content:
        raise FailureError(
            f"the content digest of what was written differs from that of `{name}`: expected "
            f"{manifest.content[:16]}…, found {found[:16]}…",
            hint=f"`tfrecreg digest {name}` computes it from the shards",
        )
    return found


def write_description(
    stage: Storage,
    to: str,
    name: str,
    version: str,
    manifest: Manifest,
    brought: Sequence[BroughtShard],
) -> None:
    """Write ``tfrecreg.json``: where the records are from, and their content digest.

    Args:
        stage: the folder of the export.
        to: the format of the export.
        name: reference of the build or release.
        version: of the exported folder.
        manifest: of the build or release.
        brought: the converted shards.

    Raises:
        StorageError: the file system refused.
    """
    document: dict[str, Any] = {
        "format_version": _FORMAT_VERSION,
        "to": to,
        "reference": name,
        "dataset": manifest.dataset,
        "version": version,
        "content": manifest.content,
        "manifest": manifest.digest,
        "splits": [
            {"name": each.name, "records": each.records, "content": each.content}
            for each in manifest.splits
        ],
        "files": [
            {"path": each.name, "split": each.entry.split, "records": each.entry.records}
            for each in brought
        ],
        "labels": manifest.labels,
    }
    with stage.create(DESCRIPTION_NAME) as writer:
        writer.write((json.dumps(document, indent=2, sort_keys=True) + "\n").encode())

"""A build or a release in a few facts, for the log of an experiment."""

from __future__ import annotations

from typing import Any

from tfrecreg.core.registry.lookup import Resolved
from tfrecreg.core.registry.registry import RegistryLike
from tfrecreg.core.registry.shardset.find import resolve_in


def describe(reference: str | Resolved, *, registry: RegistryLike | None = None) -> dict[str, Any]:
    """The facts that identify a version, for MLflow, Weights & Biases or a log.

    The dictionary is plain data, and can be written as JSON. It needs the manifest only, not the
    bytes of the version:

    - ``name``: the dataset; ``version``: of the release, None for a build; ``reference``: both
    - ``content``: hex content digest of all splits; equal for the same examples in the same splits
    - ``records``: number of all records; ``splits``: the number by name of the split
    - ``bytes``: size of all shards
    - ``schema``: blake3 of the schema's file; ``manifest``: digest of the manifest
    - ``git_commit``: the commit that was checked out when the version was released; None for a
      build, and outside git
    """
    resolved = resolve_in(registry, reference)
    manifest = resolved.manifest
    release, provenance = manifest.release, manifest.provenance
    return {
        "name": manifest.dataset,
        "version": release.version if release is not None else None,
        "reference": resolved.name,
        "content": manifest.content,
        "records": sum(split.records for split in manifest.splits),
        "splits": {split.name: split.records for split in manifest.splits},
        "bytes": sum(shard.bytes for shard in manifest.shards),
        "schema": manifest.schema.blake3,
        "manifest": manifest.digest,
        "git_commit": (provenance.commit if provenance is not None else "") or None,
    }

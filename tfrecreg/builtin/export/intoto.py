"""A version as an in-toto statement: the sha256 of every file, and how they were made.

The predicate is SLSA's provenance, which signers and verifiers know:
https://slsa.dev/spec/v1.0/provenance, https://github.com/in-toto/attestation/tree/main/spec/v1
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any

from tfrecreg.api import ExportedShard, Exporter, Folder, Manifest
from tfrecreg.manifest.file import build_manifest, render_manifest
from tfrecreg.manifest.model import MANIFEST_NAME, SCHEMA_NAME
from tfrecreg.operations.builds.parts.provenance import BuildProvenance
from tfrecreg.operations.origin import Origin, origin_of

STATEMENT_NAME = "statement.intoto.json"
_STATEMENT = "https://in-toto.io/Statement/v1"
_PREDICATE = "https://slsa.dev/provenance/v1"
_PROJECT = "https://github.com/tfrecreg/tfrecreg"
_BUILD_TYPE = f"{_PROJECT}/blob/main/docs/parts.md#in-toto"

_Json = dict[str, Any]


class IntotoExporter(Exporter):
    """The statement alone, without the shards."""

    payloads = "any"
    takes_shards = False

    def finish(
        self,
        folder: Folder,
        shards: Sequence[ExportedShard],  # noqa: ARG002 - there are none
    ) -> Iterator[str]:
        """Write the statement.

        Raises:
            ManifestError: the manifest of a release does not have its build.
        """
        origin = origin_of(self.dataset.resolved)
        text = json.dumps(statement(origin), indent=2, ensure_ascii=True) + "\n"
        with folder.create(STATEMENT_NAME) as writer:
            writer.write(text.encode("ascii"))
        yield "it repeats the digests of the manifest: `tfrecreg check` verifies the bytes"

    def how_to_read(self, folder: str) -> str:  # noqa: ARG002 - the same for all
        """What makes it worth something."""
        return f"sign `{STATEMENT_NAME}` and publish it with the shards"


def statement(origin: Origin) -> _Json:
    """The statement on a build or a release.

    Raises:
        ManifestError: the manifest of a release does not have its build.
    """
    return {
        "_type": _STATEMENT,
        "subject": list(_subjects(origin.manifest)),
        "predicateType": _PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": _BUILD_TYPE,
                "externalParameters": _parameters(origin),
                "internalParameters": {"codecs": origin.manifest.codecs},
                "resolvedDependencies": list(_dependencies(origin.manifest)),
            },
            "runDetails": _run(origin),
        },
    }


def _subjects(manifest: Manifest) -> Iterator[_Json]:
    for entry in manifest.entries.values():
        # Other tools compare sha256; a manifest that lacks it has blake3 in any case.
        digest = {"sha256": entry.sha256} if entry.sha256 else {"blake3": entry.blake3}
        yield {"name": entry.path, "digest": digest}
    built = render_manifest(build_manifest(manifest))
    sha256 = hashlib.sha256(built).hexdigest()
    yield {"name": MANIFEST_NAME, "digest": {"sha256": sha256}}


def _parameters(origin: Origin) -> _Json:
    manifest = origin.manifest
    return {
        "dataset": manifest.dataset,
        "version": manifest.release.version if manifest.release is not None else None,
        "source": manifest.source.name,
        "options": manifest.source.options,
        "compression": manifest.compression,
    }


def _dependencies(manifest: Manifest) -> Iterator[_Json]:
    raw, source = manifest.raw, manifest.source
    size = {"files": raw.files, "stored": raw.stored, "decoded": raw.decoded}
    yield {"name": "raw data", "annotations": size}
    yield {"name": SCHEMA_NAME, "digest": {"blake3": manifest.schema.blake3}}
    if source.distribution.startswith("./"):  # a local plugin
        code = {"file": source.distribution, "code": source.version}
        yield {"name": "source plugin", "annotations": code}
    elif source.distribution:
        yield {"uri": f"pkg:pypi/{source.distribution}@{source.version}", "name": "source plugin"}
    if manifest.base is not None:
        base = manifest.base
        yield {"name": f"{manifest.dataset}@{base.version}", "digest": {"blake3": base.digest}}


def _run(origin: Origin) -> _Json:
    manifest, parts = origin.manifest, origin.parts
    released = manifest.provenance
    metadata: _Json = {"invocationId": manifest.digest}
    if parts is not None:
        metadata = {"invocationId": str(parts.plan["digest"])}
        planned = parts.plan.get("planned")
        if isinstance(planned, dict):
            metadata["startedOn"] = planned["created"]
    if released is not None:
        metadata["finishedOn"] = released.created
    builder: _Json = {"id": _PROJECT}
    if released is not None:
        builder["version"] = {"tfrecreg": released.tfrecreg, "python": released.python}
    byproducts: list[_Json] = [{"name": "ledger", "annotations": _ledger(manifest)}]
    if manifest.release is not None:
        byproducts.append({"name": "gate", "annotations": {"passed": True}})
    if parts is not None:
        byproducts.extend(_receipts(parts))
    return {"builder": builder, "metadata": metadata, "byproducts": byproducts}


def _ledger(manifest: Manifest) -> _Json:
    return {
        "items": sum(each.items for each in manifest.ledger.values()),
        "written": sum(each.written for each in manifest.ledger.values()),
        "skipped": sum(sum(each.skipped.values()) for each in manifest.ledger.values()),
    }


def _receipts(parts: BuildProvenance) -> Iterator[_Json]:
    yield {"name": "plan", "digest": {"blake3": str(parts.plan["digest"])}}
    verified = set(parts.verified)
    for receipt in parts.receipts:
        about: _Json = {
            "shard": receipt.shard.path,
            "records": receipt.shard.records,
            "skipped": len(receipt.skipped),
            "verified": receipt.shard.path in verified,
        }
        if receipt.made is not None:
            made = receipt.made
            about |= {"part": made.part, "host": made.host, "created": made.created}
        yield {
            "name": f"receipts/{receipt.shard.path}",
            "digest": {"blake3": receipt.digest},
            "annotations": about,
        }

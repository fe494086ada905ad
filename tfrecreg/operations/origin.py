"""How a build or a release was made: the provenance that its manifest and its receipts record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from tfrecreg.manifest.model import Manifest
from tfrecreg.operations.builds.parts.provenance import BuildProvenance, read_provenance
from tfrecreg.registry.lookup import Resolved


@dataclass(frozen=True, slots=True)
class Origin:
    """What is recorded of the making of a version."""

    reference: str
    manifest: Manifest
    parts: BuildProvenance | None
    """The plan and the receipts; None if it was not made in parts, or where they are not here."""

    @property
    def gate(self) -> str:
        """The result of the gate, as far as the version records it."""
        if self.manifest.release is None:
            return "not judged yet: a build is judged when it is released"
        return "passed, as for every release"

    def to_json(self) -> dict[str, Any]:
        """As the document of ``show --provenance --json`` has it."""
        manifest = self.manifest
        plain = msgspec.to_builtins(manifest)
        parts = self.parts
        return {
            "reference": self.reference,
            "manifest": manifest.digest,
            "source": plain["source"],
            "raw": plain["raw"],
            "codecs": plain["codecs"],
            "schema": plain["schema"],
            "compression": manifest.compression,
            "ledger": plain["ledger"],
            "base": plain["base"],
            "parents": plain["parents"],
            "salvaged": manifest.salvaged,
            "release": plain["release"],
            "released": plain["provenance"],
            "gate": {"passed": manifest.release is not None or None, "why": self.gate},
            "parts": None
            if parts is None
            else {
                "plan": parts.plan,
                "verified": parts.verified,
                "receipts": [msgspec.to_builtins(each) for each in parts.receipts],
            },
        }


def origin_of(resolved: Resolved) -> Origin:
    """What is recorded of the making of a build or a release.

    Raises:
        ManifestError: its receipts are damaged, or of other shards.
    """
    return Origin(resolved.name, resolved.manifest, read_provenance(resolved))

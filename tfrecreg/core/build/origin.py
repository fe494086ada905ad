"""How a build or a release was made: the provenance that its manifest records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from tfrecreg.core.registry.lookup import Resolved
from tfrecreg.core.registry.manifest.model import Manifest


@dataclass(frozen=True, slots=True)
class Origin:
    """What is recorded of the making of a version."""

    reference: str
    manifest: Manifest

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
        }


def origin_of(resolved: Resolved) -> Origin:
    """What is recorded of the making of a build or a release."""
    return Origin(resolved.name, resolved.manifest)

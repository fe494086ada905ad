"""How a manifest tells that another tool wrote the shards: by its source.

The source of an adopted build is called ``adopt``. Its options describe the shards: `payloads` what
their records are, and `key` which feature names them, where one was named.
"""

from __future__ import annotations

from tfrecreg.example.kinds import PayloadKind
from tfrecreg.manifest.model import Manifest

ADOPT = "adopt"
"""The name of the source, which is no plugin."""
PAYLOADS = "payloads"
"""The option that says what the payloads are: the value of a :class:`PayloadKind`."""
KEY = "key"
"""The option that names the feature whose value is the key of a record."""

DISTRIBUTION = "tfrecreg"
"""What brings the source: no plugin of that name is meant."""


def is_adopted(manifest: Manifest) -> bool:
    """Whether another tool wrote the shards of this build or release."""
    return (manifest.source.name, manifest.source.distribution) == (ADOPT, DISTRIBUTION)


def remake_command(manifest: Manifest) -> str:
    """The command that makes the build again, for instance after its schema was changed."""
    if is_adopted(manifest):
        return f"tfrecreg adopt {manifest.dataset} --in-place"
    return f"tfrecreg build {manifest.dataset}"


def adopted_kind(manifest: Manifest | None) -> PayloadKind:
    """What the payloads are, by the manifest: Examples unless it says otherwise."""
    if manifest is None or not is_adopted(manifest):
        return PayloadKind.EXAMPLE
    said = manifest.source.options.get(PAYLOADS)
    return next((kind for kind in PayloadKind if kind.value == said), PayloadKind.EXAMPLE)

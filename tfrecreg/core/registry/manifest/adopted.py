"""How a manifest records that another tool wrote the shards: by its source.

The source of an adopted build is called ``adopt``. Its options describe the shards: `payloads` is
the kind of their payloads, and `key` the feature with the keys of records, if the user named one.
"""

from __future__ import annotations

from tfrecreg.core.example.kinds import PayloadKind
from tfrecreg.core.registry.manifest.model import Manifest
from tfrecreg.core.registry.manifest.python_data import BUILD_AGAIN, is_python_data

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

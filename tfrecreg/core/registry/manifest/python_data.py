"""How a manifest records that the records were made of a program's data: by its source.

The source of a build with `build(data=…)` is called ``python``. Its option `keys` says
where the keys come from: ``position``, ``function``, or ``feature NAME``.
"""

from __future__ import annotations

from tfrecreg.core.plugins.bundled import OURS
from tfrecreg.core.registry.manifest.model import Manifest

PYTHON = "python"
"""The name of the source, which is not a plugin."""
KEYS = "keys"
"""The option for the origin of the keys."""
BUILD_AGAIN = "run the program that calls `build(data=…)`"
"""What makes such a build again, for hints."""


def is_python_data(manifest: Manifest) -> bool:
    """Whether a program handed the data of this build or release to `build`."""
    return (manifest.source.name, manifest.source.distribution) == (PYTHON, OURS)

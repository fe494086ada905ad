"""The features of the project: rooms that come in by the hooks that strangers use.

Each package is a room, and its `plugin` announces what it brings.

- `export`: the exporters, values of ``export --to``
- `images`: the decoder of images
- `engines`: the engines of other libraries, values of ``--engine``
- `reports`: report formats, values of ``check --format``
"""

from __future__ import annotations

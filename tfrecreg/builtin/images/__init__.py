"""The bundled decoder of features, which reads images.

- `plugin`: announces it
- `decoder`: :mod:`tfrecreg.core.images` with the interface of a decoder
"""

from __future__ import annotations

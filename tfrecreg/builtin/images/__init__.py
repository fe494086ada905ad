"""The bundled decoder of features, which reads images.

- `plugin`: announces it
- `decoder`: :mod:`tfrecreg.images` with the interface of a decoder
"""

from __future__ import annotations

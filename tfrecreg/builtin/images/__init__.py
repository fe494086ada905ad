"""The bundled decoder of features, which reads images.

- `plugin`: announces it
- `decoder`: what :mod:`tfrecreg.images` knows of an image, as a decoder has to say it
"""

from __future__ import annotations

"""The bundled decoder of features, which reads images.

- `plugin`: announces it
- `decoder`: what :mod:`tfrecreg.images` knows of an image, as a decoder has to say it

It imports the modules of the core and not their list in `tfrecreg.api`, which takes longer to
import than a training job takes to open its records.
"""

from __future__ import annotations

"""The bundled exporters.

Nothing here imports TensorFlow or TFDS: TFDS's files are JSON and text.
"""

from __future__ import annotations

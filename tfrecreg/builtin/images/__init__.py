"""The bundled decoder of features, which reads images."""

from __future__ import annotations

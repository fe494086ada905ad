"""The plugins that come with the package: modules with hooks, by name.

They are named here and not by entry points: they are found without looking through what is
installed, and in a checkout that is not installed at all. Nothing imports them but discovery.
"""

from __future__ import annotations

BUNDLED = (
    "tfrecreg.builtin.export.plugin",
    "tfrecreg.builtin.images.plugin",
    "tfrecreg.builtin.engines.plugin",
    "tfrecreg.builtin.reports.plugin",
    "tfrecreg.pages.plugin",
    "tfrecreg.validators.plugin",
    "tfrecreg_coco.plugin",
    "tfrecreg_imagefolder.plugin",
    "tfrecreg_mnist.plugin",
)
"""Modules with hooks, as an entry point would name them."""
DECODERS = ("tfrecreg.builtin.images.decoder:PictureDecoder",)
"""Classes of the decoders among them, which are asked without a search for plugins."""
DISABLE = "TFRECREG_DISABLE"
"""The environment variable for plugins that are switched off, with commas between them."""

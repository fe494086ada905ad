"""The bundled source `imagefolder`: pictures in folders that are named after their classes.

It is a plugin like any other: it comes in through the `tfrecreg` entry-point group and imports
nothing of the project but `tfrecreg.api`.

- `plugin`: announces the source, and loads it only when it is used
- `source`: :class:`~tfrecreg_imagefolder.source.ImageFolderSource`, which lists and makes examples
- `options`: what `--option` takes, checked as a whole
- `walk`: what lies in a folder: files, folders, links that are followed, and what is left out
- `layout`: what the folders of the first levels are: splits, classes, or neither
- `labels`: the file that labels a flat folder
- `listing`: all items of folders of classes, with their splits and labels
- `flat`: the same for a flat folder
- `shares`: splits by fractions, the same ones tomorrow and on any machine

The schema is `imagefolder.pbtxt` (in the repository it lies in `schemas/`).
"""

from __future__ import annotations

__all__: list[str] = []

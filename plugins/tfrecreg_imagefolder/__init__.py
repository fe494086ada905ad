"""The bundled source `imagefolder`: images in folders that are named after their classes.

It is a plugin like any other: it is announced through the entry-point group `tfrecreg` and imports
nothing of the project but `tfrecreg.api`.

- `plugin`: announces the source, and recognizes class folders where no source is named
- `listing`: options; the items of class folders, with or without folders of splits above them
- `label_file`: the items of a flat folder, by a label file or by the names of files
- `source`: :class:`~tfrecreg_imagefolder.source.ImageFolderSource`, which makes the examples

The schema is `imagefolder.pbtxt` (in the repository it is in `schemas/`).
"""

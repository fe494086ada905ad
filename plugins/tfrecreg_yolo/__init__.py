"""The bundled source `yolo`: images with label files of the YOLO family.

It is a plugin like any other: it is announced through the entry-point group `tfrecreg` and imports
nothing of the project but `tfrecreg.api`.

- `plugin`: announces the source, and recognizes its label files where no source is named
- `dataset`: options; the files of the raw data, what describes them, and the images of each split
- `source`: :class:`~tfrecreg_yolo.source.YoloSource`: items in the parent, examples in workers

Schemas: `yolo.pbtxt`, and the parts `objects*.pbtxt` that all sources of objects have.
"""

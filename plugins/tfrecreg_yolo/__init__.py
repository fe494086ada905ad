"""The bundled source `yolo`: images with label files of the YOLO family.

It is a plugin like any other: it is announced through the entry-point group `tfrecreg` and imports
nothing of the project but `tfrecreg.api`.

Listing, once, in the parent process:

- `plugin`: announces the source, and loads it only when it is used
- `recognition`: whether a folder has label files, where no source is named
- `yolo_options`: the options of the source
- `raw_listing`: the files of the raw data: images, label files, others
- `yaml_reader`: YAML as plain texts, lists and mappings
- `description`: `data.yaml`, `obj.data` or `classes.txt`: classes, splits, keypoints
- `splits`: the images of each split
- `dataset`: all of it together: items, remarks, raw files, the task

Making an example, in a worker:

- `source`: :class:`~tfrecreg_yolo.source.YoloSource`
- `rows`: the rows of a label file

Schemas: `yolo.pbtxt`, and the parts `objects*.pbtxt` that all sources of objects have.
"""

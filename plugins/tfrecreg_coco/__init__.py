"""The bundled source `coco`: images with annotations in COCO's JSON.

It is a plugin like any other: it is announced through the entry-point group `tfrecreg` and imports
nothing of the project but `tfrecreg.api`.

Listing, once, in the parent process:

- `plugin`: announces the source, and loads it only when it is used
- `coco_options`: the options of the source
- `annotation_files`: which JSON files are read for which split and task
- `image_folders`: the folders of the images, and the existing images
- `json_scanner`: one pass over a large JSON file, in bounded memory
- `annotation_table`: a file's images and categories, and the offsets of its annotations
- `dataset`: all splits together: items, label maps, raw files

Making an example, in a worker:

- `source`: :class:`~tfrecreg_coco.source.CocoSource`
- `objects`: objects and panoptic segments of one image, by the shared part of the api
- `masks`: its segmentations, as polygons, run lengths or PNG

Schemas: `coco.pbtxt` and the parts `coco_*.pbtxt` and `objects*.pbtxt`, which the repository has in
`schemas/`.
"""

"""The bundled source `coco`: images with annotations in COCO's JSON.

It is a plugin like any other: it is announced through the entry-point group `tfrecreg` and imports
nothing of the project but `tfrecreg.api`.

- `plugin`: announces the source, and loads it only when it is used
- `files`: options; annotation files as structs; which of them are read for which split and task
- `folders`: the folders of the images, and the existing images
- `source`: :class:`~tfrecreg_coco.source.CocoSource`: items in the parent, examples in workers
- `objects`: objects with their masks, and panoptic segments, of one image

Schemas: `coco.pbtxt` and the parts `coco_*.pbtxt` and `objects*.pbtxt`, which the repository has in
`schemas/`.
"""

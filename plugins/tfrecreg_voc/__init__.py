"""The bundled source `voc`: images with annotations in Pascal VOC's XML.

- `plugin`: announces the source, and recognizes folders with annotations
- `files`: options; the files of the raw data, and the entries of each split
- `source`: what an XML says; :class:`~tfrecreg_voc.source.VocSource`

Schemas: `voc.pbtxt`, the parts `voc_*.pbtxt`, and `objects.pbtxt`, which all sources of objects
have.
"""

"""The bundled source `voc`: images with annotations in Pascal VOC's XML.

It is a plugin like any other: it is announced through the entry-point group `tfrecreg` and imports
nothing of the project but `tfrecreg.api`.

Listing, once, in the parent process:

- `plugin`: announces the source, and loads it only when it is used
- `recognition`: whether a folder has annotations, where no source is named
- `voc_options`: the options of the source, and VOC's own classes
- `raw_listing`: the files of the raw data, and which image belongs to which XML
- `splits`: the entries of each split, by `ImageSets` or by folders
- `dataset`: all of it together: items, remarks, raw files, classes

In the parent and in workers:

- `annotation`: what an XML says of its image
- `xml_reader`: XML as elements, without document types and entities
- `source`: :class:`~tfrecreg_voc.source.VocSource`

Schemas: `voc.pbtxt`, the parts `voc_*.pbtxt`, and `objects.pbtxt`, which all sources of objects
have.
"""

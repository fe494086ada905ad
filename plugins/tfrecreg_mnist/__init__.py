"""The bundled source `mnist`: IDX files of u8 images and u8 labels, as MNIST is published.

It is a plugin like any other: it is announced through the entry-point group `tfrecreg` and imports
nothing of the project but `tfrecreg.api`.

- `plugin`: announces the source, and loads it only when it is used
- `source`: :class:`~tfrecreg_mnist.source.MnistSource`, which lists images and makes examples
- `idx_files`: the roles of files in a folder: names, sets, splits, pairs
- `idx`: the IDX format, plain or in gzip: header, one verifying pass, random access
- `grey_png`: a deterministic encoder of grayscale PNG

Schemas: `mnist.pbtxt` and `mnist_raw.pbtxt` (in the repository they are in `schemas/`).
"""

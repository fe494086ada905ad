"""The bundled source `mnist`: IDX files of u8 images and u8 labels, as MNIST is published.

Schemas: `mnist.pbtxt` and `mnist_raw.pbtxt` (in the repository they are in `schemas/`).
"""

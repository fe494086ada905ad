"""Handing a build or a release to other tools, as a folder of its own.

- `run`: the operation: the target and the format of the export
- `shards`: bringing a shard's records there, verified on the way
- `source_records`: the records of a shard, verified while they are read
- `converted`: the formats that hold the records in files of their own
- `index`: shards with an index of records beside each, for DALI and others
- `tfds`: the files that make the folder a dataset of TensorFlow Datasets
- `tfx`: examples, statistics and schema in the layout of TFX
- `croissant`: the description of a version in Croissant's JSON-LD
- `intoto`: an in-toto statement with the digests of all files and the provenance
- `connectors`: a schema as TFDS's features
- `images`: what the headers of encoded images say

Nothing here imports TensorFlow or TFDS: TFDS's files are JSON and text.
"""

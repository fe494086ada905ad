"""The bundled exporters.

- `plugin`: announces them
- `tfds`: the files that make a folder a dataset of TensorFlow Datasets; `connectors` has a schema
  as its features, `tfds_records` records in files that it reads by number, `images` what the
  headers of encoded images say
- `index`: shards with an index of records beside each, for DALI and others
- `tfx`: examples, statistics and schema in the layout of TFX
- `croissant`: the description of a version in Croissant's JSON-LD
- `arrayrecord`: ArrayRecord files, which hold payloads as they are
- `parquet`: Parquet files; `columns` has the columns of a schema, and their Arrow arrays,
  `hub_features` their types as the Hub knows them
- `webdataset`: tar files of samples; `samples` has the members of a sample, and features as JSON
- `jsonl`: JSON Lines, one record per line
- `file_objects`: files of a storage as Python's file objects

Nothing here imports TensorFlow or TFDS: TFDS's files are JSON and text.
"""

from __future__ import annotations

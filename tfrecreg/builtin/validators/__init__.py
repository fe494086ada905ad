"""The bundled validators. `plugin` announces them by the hook that all plugins use.

- `crc`: framing, checksums and compression of each shard (``CRC``)
- `manifest`: the set of files against the manifest, or against their names (``SHD``)
- `schema`: every record against the schema (``SCH``)
- `inflation`: the size against the raw data (``INF``)
- `source`: images against their digests and raw files, records against the ledger (``SRC``)
- `statistics`: TFDV's anomalies of whole splits (``SCH1xx``)
- `drift`: splits against those of another version and against each other (``DRF``)
- `duplicates`: the same image or record again, in one split or in two (``DUP``)
- `images`: encoded images against the declarations of records (``IMG``)
- `items`: the items of raw data against the records that hold them, on request (``SRC``)
- `annotations`: labels, objects and classes (``ANN``)
- `content`: splits against another version, a digest or expected counts, on request (``SHD``)
- `registry`: releases against their digests, each other, and git's history (``REG``)

Shared by several: `record_tables` for records as columns, `image_features` for features of images,
`image_sizes` for the sizes of all, `payload_kinds` for records that are not Examples, and
`options`.
"""

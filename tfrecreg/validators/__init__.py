"""The bundled validators. Each module is one; `plugin` announces them by the hook all plugins use.

- `crc`: framing, checksums and compression of each shard (``CRC``)
- `manifest`: the set of files against the manifest, or against their names (``SHD``)
- `schema`: every record against the schema (``SCH``)
- `inflation`: the size against the raw data (``INF``)
- `source`: pictures against their digests and raw files, records against the ledger (``SRC``)
- `statistics`: what TFDV says of whole splits (``SCH1xx``)
- `drift`: splits against those of another version and against each other (``DRF``)
- `duplicates`: the same picture or record again, in one split or in two (``DUP``)
- `images`: encoded pictures against what records declare (``IMG``)
- `annotations`: labels, objects and classes (``ANN``)
- `registry`: releases against their digests, each other, and git's history (``REG``)

What several of them share: `bare` and `siblings` for files without a manifest, `hosts` for shards
and training hosts, `payloads` for records that are no Examples, `places` for findings about one
record, `tables` for records of one layout, `values` and `options`.
"""

from __future__ import annotations

__all__: list[str] = []

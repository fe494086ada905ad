"""The manifest: the JSON that says what one build or release is.

`model` has its fields, `canonical` the one way to write JSON, `file` reading, writing and digests,
`totals` its sums without parsing all of it, `adopted` how it tells that another tool wrote the
shards, `salvaged` the mark of a folder whose shards were cut out of damaged ones.
"""

from __future__ import annotations

from tfrecreg.manifest.file import manifest_digest, parse_manifest, render_manifest, seal
from tfrecreg.manifest.model import (
    FORMAT_VERSION,
    INDEX_FOLDER,
    LABELS_NAME,
    LEDGER_NAME,
    MANIFEST_NAME,
    Change,
    ChangeCounts,
    FileEntry,
    Ledger,
    Manifest,
    Parent,
    Provenance,
    RawTotals,
    ReleaseEntry,
    SchemaEntry,
    ShardEntry,
    SourceEntry,
    SplitEntry,
)
from tfrecreg.manifest.salvaged import SalvageMark, read_mark

__all__ = [
    "FORMAT_VERSION",
    "INDEX_FOLDER",
    "LABELS_NAME",
    "LEDGER_NAME",
    "MANIFEST_NAME",
    "Change",
    "ChangeCounts",
    "FileEntry",
    "Ledger",
    "Manifest",
    "Parent",
    "Provenance",
    "RawTotals",
    "ReleaseEntry",
    "SalvageMark",
    "SchemaEntry",
    "ShardEntry",
    "SourceEntry",
    "SplitEntry",
    "manifest_digest",
    "parse_manifest",
    "read_mark",
    "render_manifest",
    "seal",
]

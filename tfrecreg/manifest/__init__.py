"""The manifest: the JSON that describes one build or release.

`model` has its fields, `canonical` the canonical form of JSON, `file` reading, writing and digests,
`totals` its sums without parsing all of it, `adopted` the entries for shards that another tool
wrote, `python_data` those for the data of a program, `salvaged` the mark of a folder with shards
that were salvaged from damaged ones.
"""

from __future__ import annotations

from tfrecreg.manifest.file import manifest_digest, parse_manifest, render_manifest, seal
from tfrecreg.manifest.model import (
    FORMAT_VERSION,
    INDEX_FOLDER,
    LABELS_NAME,
    LEDGER_NAME,
    MANIFEST_NAME,
    SCHEMA_NAME,
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
    "SCHEMA_NAME",
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

"""TFRecord files as bytes: framing, checksums, gzip, damage. No TensorFlow.

For whoever reads or writes shards; everything above this layer sees records, faults and digests.

- `framing`: the 16 bytes around a payload, and their checksums
- `gzip`: how shards are compressed: own header, fixed parameters, a member every MiB of stream
- `hashing`: whole files hashed, those that are being written on another core
- `encoder`: payloads framed and compressed, with the rows of their index
- `writer`: shards with their index, hashed as they are written
- `file`: a file as a scan reads it: at any place, hashed on the way
- `inflate`, `damage`: gzip read past damage, and what that was
- `decoded`: how large a gzip file is without its compression
- `stream`, `opening`: a shard as one stream, plain or gzip as its bytes say
- `walk`: the inner loop from record to record
- `native`: the same, compiled (`walk.c`)
- `scanner`: which of the two reads and searches
- `candidates`, `finder`, `resync`: the next good record behind a damaged one
- `details`: the words of faults
- `outcome`: what TensorFlow does when it gets to them
- `reader`: one pass over a shard
- `batch`: what the reader hands on
- `access`: records by their numbers
- `places`: where they are: by our index, by a sidecar, or by the shard itself
- `members`: gzip read at any place
- `sidecars`: the indexes of other tools
"""

from __future__ import annotations

from tfrecreg.records.access import Records, read
from tfrecreg.records.batch import Fault, RecordBatch, StreamEnd
from tfrecreg.records.details import LFS_POINTER
from tfrecreg.records.encoder import Segment
from tfrecreg.records.framing import MAX_LENGTH, OVERHEAD, frame, frame_header
from tfrecreg.records.gzip import Compression, zlib_version
from tfrecreg.records.reader import BATCH_BYTES, HOLD_LIMIT, scan
from tfrecreg.records.scanner import scanner_kind
from tfrecreg.records.writer import Hashed, SegmentWriter, ShardWriter, Written, hashed_write

__all__ = [
    "BATCH_BYTES",
    "HOLD_LIMIT",
    "LFS_POINTER",
    "MAX_LENGTH",
    "OVERHEAD",
    "Compression",
    "Fault",
    "Hashed",
    "RecordBatch",
    "Records",
    "Segment",
    "SegmentWriter",
    "ShardWriter",
    "StreamEnd",
    "Written",
    "frame",
    "frame_header",
    "hashed_write",
    "read",
    "scan",
    "scanner_kind",
    "zlib_version",
]

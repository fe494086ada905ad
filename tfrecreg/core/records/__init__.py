"""TFRecord files as bytes: framing, checksums, gzip, damage. No TensorFlow.

Only this package reads and writes the bytes of shards. Other packages see records, faults and
digests.

* :mod:`.writer` - writes shards and their indexes
* :mod:`.reader` - reads a shard in order, past damage
* :mod:`.reading` - reads records by number
"""

"""TFRecord files as bytes: framing, checksums, gzip, damage. No TensorFlow.

For code that reads or writes shards; everything above this layer sees records, faults and digests.

Writing:

- `framing`: the 16 bytes around a payload, and their checksums
- `gzip_writer`: deterministic gzip, with a member per MiB of stream
- `writer`: shards and segments of shards with their index, hashed while they are written
- `tfrecord_writer`: TFRecord files for any program, examples from plain values
- `hashing`: hashes of files, computed on another core while they are read or written

Reading in order:

- `reader`: one pass over a shard
- `batch`, `batch_digests`, `payload_columns`: the results of a pass: records, faults, totals;
  digests of records; their values, where many have one layout
- `stream`, `gzip_reader`: a shard as one stream of bytes; gzip is read past its damage
- `gzip_places`: where gzip members may begin in any bytes, in Python; compiled in `walk.c`
- `frame_scan`: the walk from record to record, and the search for sound records after damage, in
  Python
- `scanner`: the same, compiled (`walk.c`), and the choice between the two
- `resync`: the next sound record after a damaged one, and the texts of faults
- `second_read`: whether damage is in a store or happened in transfer
- `tensorflow_reader`: the behavior of TensorFlow's reader at a fault

Reading by number:

- `access`: records by number
- `offsets`: offsets of records: from our index, from another tool's, or from the shard itself
- `gzip_random_access`: gzip read at any offset
"""

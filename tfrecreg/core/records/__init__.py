"""TFRecord files as bytes: framing, checksums, gzip, damage. No TensorFlow.

For code that reads or writes shards; everything above this layer sees records, faults and digests.

Writing:

Reading in order:

Reading by number.
"""

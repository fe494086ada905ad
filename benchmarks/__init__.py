"""Speed and size, as ratios against baselines that run side by side in the same run.

``python -m benchmarks NAME`` runs one of them and prints its table; ``docs/benchmarks.md`` keeps
the tables with the commands that made them. No test depends on them.

- `images`: building 1,000 JPEGs (or more) against copying them as safely, and against TFDS
- `mnist`: building 60,000 digits against TFDS
- `annotations`: building from a large COCO file: microseconds an annotation, and memory
- `scan`: reading with both checksums against the limit of C (`limit.c`), and against tf.data
- `scan_read`: one such reading, as a program of its own
- `records`: checking records of several sizes and layouts, in microseconds a record
- `records_read`: one such check, as a program of its own
- `pairs`: running two commands in turn and comparing them pair by pair
- `raw`: the raw data that the benchmarks generate
- `tfds_build`: what TFDS does with the same raw data, as a program of its own
"""

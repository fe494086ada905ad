"""The baseline of the benchmark `table`: pyarrow reads a CSV, our writer writes its rows.

usage: python -m benchmarks.table_arrow TABLE OUT      prints seconds and records
"""

from __future__ import annotations

import sys
import time

import pyarrow.csv

from tfrecreg import TFRecordWriter


def main() -> None:
    table, out = sys.argv[1:]
    start = time.perf_counter()
    count = 0
    with TFRecordWriter(out) as writer, pyarrow.csv.open_csv(table) as batches:
        for batch in batches:
            for example in batch.to_pylist():
                writer.write(example)
                count += 1
    print(f"pyarrow table seconds={time.perf_counter() - start:.3f} examples={count}")


if __name__ == "__main__":
    main()

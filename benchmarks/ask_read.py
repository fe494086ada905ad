"""The program that the benchmark `ask` times: one question about a folder, without imports.

usage: python -m benchmarks.ask_read kept|fresh|tfdata|parquet|check FOLDER

It prints the answer, and the seconds and CPU seconds in all processes of the best of some turns.
`kept` has the catalog in the user's cache, and makes it before the time begins; `fresh` removes the
cache.
"""

from __future__ import annotations

import os
import resource
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

TURNS = 5
SECONDS = 5.0
"""Answers, and the time after which no other one begins; the fastest counts."""
SQL = "SELECT count(*) AS n FROM {} WHERE label = 3 AND score > 0.25 AND width BETWEEN 200 AND 400"


def _jobs() -> int:
    return os.cpu_count() or 1


def query(folder: Path, *, fresh: bool) -> Callable[[], int]:
    """A function that asks as `tfrecreg query` does, with all processors."""
    from tfrecreg.builtin.query.ask import ask
    from tfrecreg.builtin.query.catalog import expect_packages
    from tfrecreg.core.workers.local import LocalEngine

    expect_packages()
    cache = Path(os.environ["XDG_CACHE_HOME"])

    def answer() -> int:
        if fresh and cache.exists():
            shutil.rmtree(cache)
        with LocalEngine(_jobs()) as engine, ask(str(folder), engine=engine) as questions:
            return int(questions.answer(SQL.format("records")).rows()[0]["n"])

    if not fresh:
        answer()
    return answer


def tfdata(folder: Path) -> Callable[[], int]:
    """A function that reads all records by tf.data, in batches and in parallel."""
    import tensorflow as tf

    features = {
        "label": tf.io.FixedLenFeature([], tf.int64),
        "score": tf.io.FixedLenFeature([], tf.float32),
        "width": tf.io.FixedLenFeature([], tf.int64),
    }
    paths = sorted(str(path) for path in folder.iterdir())

    def matching(batch: tf.Tensor) -> tf.Tensor:
        found = tf.io.parse_example(batch, features)
        width = found["width"]
        kept = (found["label"] == 3) & (found["score"] > 0.25) & (width >= 200) & (width <= 400)
        return tf.math.count_nonzero(kept)

    def answer() -> int:
        data = tf.data.TFRecordDataset(
            paths, buffer_size=8 << 20, num_parallel_reads=tf.data.AUTOTUNE
        )
        data = data.batch(4096).map(
            matching, num_parallel_calls=tf.data.AUTOTUNE, deterministic=False
        )
        return int(data.prefetch(tf.data.AUTOTUNE).reduce(tf.constant(0, tf.int64), tf.add))

    return answer


def parquet(folder: Path) -> Callable[[], int]:
    """A function that asks DuckDB about a Parquet file of the same scalars."""
    import duckdb

    from tfrecreg.builtin.query.ask import ask

    path = folder.with_name("scalars.parquet")
    if not path.exists():
        import pyarrow.parquet as pq

        with ask(str(folder)) as questions:
            sql = "SELECT id, label, score, width FROM records"
            pq.write_table(questions.answer(sql).arrow(), path)

    def answer() -> int:
        with duckdb.connect() as connection:
            found = connection.execute(SQL.format(f"'{path}'")).fetchone()
        assert found is not None
        return int(found[0])

    return answer


def check(folder: Path) -> Callable[[], int]:
    """A function that checks the records, with all processors."""
    from tfrecreg.core.check.options import CheckOptions
    from tfrecreg.core.check.run import check
    from tfrecreg.core.workers.local import LocalEngine

    def answer() -> int:
        options = CheckOptions(fail_on="never")
        with LocalEngine(_jobs()) as engine:
            (report,) = check([str(folder)], options=options, engine=engine)
        assert report.status == "pass", report.errors
        return report.records

    return answer


def main() -> None:
    """Answer some times, and print the fastest."""
    kind, name = sys.argv[1:]
    folder = Path(name)
    answer = {
        "kept": lambda: query(folder, fresh=False),
        "fresh": lambda: query(folder, fresh=True),
        "tfdata": lambda: tfdata(folder),
        "parquet": lambda: parquet(folder),
        "check": lambda: check(folder),
    }[kind]()
    seconds: list[float] = []
    work: list[float] = []
    while len(seconds) < TURNS and sum(seconds) < SECONDS:
        start, before = time.perf_counter(), _work()
        found = answer()
        seconds.append(time.perf_counter() - start)
        work.append(_work() - before)
    print(f"{kind} answer={found} seconds={min(seconds):.5f} work={min(work):.5f}")


def _work() -> float:
    each = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in each)


if __name__ == "__main__":
    main()

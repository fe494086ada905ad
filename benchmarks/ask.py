"""A filter and a count: `query` against tf.data, and against DuckDB over a Parquet file."""

from __future__ import annotations

import os
import sys
import tempfile
from argparse import Namespace
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks.pairs import Measured, alternate, row, run
from tfrecreg.core.example.model import encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature
from tfrecreg.core.records.framing import frame

__all__ = ["main", "write_records"]

_SMALL, _LARGE = 900, 10_000
"""Bytes of a record: of the comparisons, and of the one for the size of the catalog."""
_SHARDS = 8
_LARGE_SHARE = 10
"""So many small records for each large one."""


def main(arguments: Namespace) -> list[str]:
    """Run it and return the rows of the table."""
    with tempfile.TemporaryDirectory(prefix="tfrecreg-bench-", dir=arguments.work) as work:
        folder, cache = Path(work) / "records", Path(work) / "cache"
        write_records(folder, arguments.count, _SMALL)
        rows = _rows(folder, cache, f"{arguments.count:,} records of 900 B", arguments.runs)
        large, count = Path(work) / "large", max(arguments.count // _LARGE_SHARE, 1)
        write_records(large, count, _LARGE)
        return [*rows, _size(large, Path(work) / "other", f"{count:,} records of 10 kB")]


def write_records(folder: Path, count: int, size: int) -> None:
    """Write records of a size in several shards."""
    folder.mkdir()
    for shard in range(_SHARDS):
        path = folder / f"x-train.tfrecord-{shard:05d}-of-{_SHARDS:05d}"
        with path.open("wb") as file:
            for number in range(shard, count, _SHARDS):
                file.writelines(_record(number, size))
        os.utime(path, (1e9, 1e9))  # no note is kept of a file that is quite new


def _record(number: int, size: int) -> tuple[bytes, bytes, bytes]:
    head = {
        "id": bytes_feature(f"{number:09d}".encode()),
        "label": int64_feature(number % 10),
        "score": float_feature(number % 1000 / 1000),
        "width": int64_feature(100 + number % 500),
    }
    room = size - len(encode({**head, "data": bytes_feature(b"")})) - 6
    # Without magic bytes: what begins like an image is catalogued as one.
    payload = encode({**head, "data": bytes_feature(number.to_bytes(6, "little") * (room // 6))})
    header, footer = frame(payload)
    return header, payload, footer


def _rows(folder: Path, cache: Path, what: str, runs: int) -> list[str]:
    def asking(kind: str) -> Measured:
        found = run(
            [sys.executable, "-m", "benchmarks.ask_read", kind, str(folder)],
            TF_CPP_MIN_LOG_LEVEL="3",
            XDG_CACHE_HOME=str(cache),
        )
        return replace(found, work=float(found.output.rpartition("work=")[2]))

    kept, fresh, tfdata, parquet, check = (
        partial(asking, kind) for kind in ("kept", "fresh", "tfdata", "parquet", "check")
    )
    answers = {_answer(each()) for each in (fresh, kept, tfdata, parquet)}
    if len(answers) != 1:
        raise RuntimeError(f"the answers differ: {answers}")
    table = []
    for name, ours, theirs, target, faster in (
        ("tf.data / query with the catalog", kept, tfdata, "at least 100", True),
        ("tf.data / query without it", fresh, tfdata, "at least 1.5", True),
        ("DuckDB over Parquet / query", kept, parquet, "at least 0.8", True),
        ("cataloguing / check", fresh, check, "at most 1.3", False),
    ):
        pairs = alternate(runs, ours, theirs)
        table.append(row(f"{what}: {name}", *pairs, target, faster=faster))
        table.append(row(f"{what}: {name}, processor", *pairs, target, faster=faster, work=True))
    return table


def _size(folder: Path, cache: Path, what: str) -> str:
    run(
        [sys.executable, "-m", "benchmarks.ask_read", "fresh", str(folder)],
        XDG_CACHE_HOME=str(cache),
    )
    sizes = [
        sum(path.stat().st_size for path in each.rglob("*") if path.is_file())
        for each in (cache, folder)
    ]
    share = f"**{sizes[0] / sizes[1]:.2%}**"
    shown = [f"{each / 1e6:,.1f} MB" for each in sizes]
    return f"| {what}: catalog / records | {shown[0]} | {shown[1]} | {share} | at most 5 % |"


def _answer(measured: Measured) -> str:
    return measured.output.partition("answer=")[2].split()[0]

"""The viewer: from its start to the first grid, a filter, a page of thumbnails, and its memory."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx

from benchmarks.ask import write_records
from benchmarks.pairs import run
from benchmarks.raw import images

__all__ = ["main"]

_BYTES = 900
_JPEG_SHARE = 16
"""So many small records for each JPEG: 60,000 for a million."""
_PAGE = 60
_FACETS_SECONDS = 180
"""What the page of Facets may take."""


def main(arguments: Namespace) -> list[str]:
    """Run it and return the rows of the table."""
    with tempfile.TemporaryDirectory(prefix="tfrecreg-bench-", dir=arguments.work) as work:
        folder, cache = Path(work) / "records", Path(work) / "cache"
        write_records(folder, arguments.count, _BYTES)
        what = f"{arguments.count:,} records of 900 B"
        rows = _records(str(folder), cache, what, arguments.runs)
        count = max(arguments.count // _JPEG_SHARE, _PAGE * (arguments.runs + 1))
        raw, out = Path(work) / "raw", Path(work) / "out"
        images(raw, count)
        run([sys.executable, "-m", "benchmarks.build", "imagefolder", str(raw), str(out)])
        target, what = str(out / "data" / "bench"), f"{count:,} JPEGs"
        return [*rows, *_jpegs(target, cache, what, arguments.runs), *_facets(target)]


def _records(target: str, cache: Path, what: str, runs: int) -> list[str]:
    with _viewer(target, cache) as (client, start, _):
        cold = _first_grid(client, start)
        _catalogued(client)
    warm, filters, facets, memory = [], [], [], []
    for number in range(runs):
        with _viewer(target, cache) as (client, start, process):
            warm.append(_first_grid(client, start))
            _catalogued(client)
            for least in range(0, 500, 100):
                where = f"label = {number % 10} AND width >= {101 + least}"
                selection, took = _timed(client, "/api/t/0/select", where=where)
                filters.append(took)
            name = selection["selection"]
            facets.append(_timed(client, "/api/t/0/facets", selection=name)[1])
            for at in range(0, selection["count"], max(selection["count"] // 20, 1)):
                _timed(client, "/api/t/0/records", selection=name, **{"from": at})
            memory.append(_peak(process))
    return [
        _row(f"{what}: first grid, without catalog and offsets", [cold], 2),
        _row(f"{what}: first grid", warm, 2),
        _row(f"{what}: a filter in SQL, as an answer", filters, 0.2),
        _row(f"{what}: all facets of a selection", facets, None),
        f"| {what}: memory of the viewer | {max(memory):,} MB | | | at most 300 MB |",
    ]


def _jpegs(target: str, cache: Path, what: str, runs: int) -> list[str]:
    grids, pages, kept, memory = [], [], [], []
    for _ in range(runs):
        with _viewer(target, cache) as (client, start, process):
            grids.append(_first_grid(client, start, thumbs=True))
            _catalogued(client)
            for number in range(1, runs + 1):
                found, _ = _timed(client, "/api/t/0/records", **{"from": number * _PAGE})
                paths = [each["thumb"] for each in found["records"]]
                pages.append(_thumbnails(client, paths))
            kept.append(_thumbnails(client, paths))
            memory.append(_peak(process))
    return [
        _row(f"{what}: first grid with its {_PAGE} thumbnails", grids, 1),
        _row(f"{what}: {_PAGE} thumbnails", pages, 0.15),
        _row(f"{what}: {_PAGE} thumbnails that are kept", kept, 0.15),
        f"| {what}: memory of the viewer | {max(memory):,} MB | | | at most 300 MB |",
    ]


_FACETS = """
import glob, sys, time
import tensorflow_data_validation as tfdv
start = time.monotonic()
options = tfdv.StatsOptions(enable_semantic_domain_stats=False)
found = tfdv.generate_statistics_from_tfrecord(sys.argv[1], stats_options=options)
from tensorflow_data_validation.utils import display_util
html = display_util.get_statistics_html(found)
print(time.monotonic() - start, int(found.datasets[0].num_examples))
"""
"""The page of Facets with TFDV's statistics: the other way to look into TFRecords."""


def _facets(target: str) -> list[str]:
    """Rows for the first shard; none where TFDV is not installed."""
    if find_spec("tensorflow_data_validation") is None:
        return []
    shard = str(min(Path(target).glob("*.tfrecord*")))
    start = time.monotonic()
    try:
        done = subprocess.run(
            [sys.executable, "-c", _FACETS, shard],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=True,
            timeout=_FACETS_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return [f"| page of Facets of one shard, by TFDV | over {_FACETS_SECONDS} s | | | |"]
    everything = time.monotonic() - start
    inner, count = done.stdout.split()[-2:]
    what = f"{int(count):,} JPEGs: page of Facets, by TFDV"
    return [_row(f"{what}, with its start", [everything], None), _row(what, [float(inner)], None)]


@contextmanager
def _viewer(
    target: str, cache: Path
) -> Iterator[tuple[httpx.Client, float, subprocess.Popen[str]]]:
    start = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "tfrecreg", "view", target, "--no-open"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "XDG_CACHE_HOME": str(cache)},
    )
    try:
        assert process.stdout is not None
        url = httpx.URL(process.stdout.readline().strip())
        headers = {"authorization": f"Bearer {url.params['token']}"}
        with httpx.Client(
            base_url=url.copy_with(query=None), headers=headers, timeout=600
        ) as client:
            yield client, start, process
    finally:
        process.terminate()
        process.wait()


def _timed(client: httpx.Client, path: str, **query: Any) -> tuple[Any, float]:
    start = time.perf_counter()
    answer = client.get(path, params=query or None)
    took = time.perf_counter() - start
    return answer.raise_for_status().json(), took


def _first_grid(client: httpx.Client, start: float, *, thumbs: bool = False) -> float:
    """Seconds from the start of the process to the records of the first grid."""
    client.get("/").raise_for_status()
    for path in ("/api/targets", "/api/t/0"):
        client.get(path).raise_for_status()
    found = client.get("/api/t/0/records", params={"count": _PAGE}).raise_for_status().json()
    if thumbs:
        _thumbnails(client, [each["thumb"] for each in found["records"]])
    return time.monotonic() - start


def _thumbnails(client: httpx.Client, paths: list[str]) -> float:
    """Seconds for thumbnails over six connections, as many as a browser has."""
    host, headers = client.base_url.netloc.decode(), dict(client.headers)

    def fetch(some: list[str]) -> None:
        # httpx would take longer than the viewer.
        connection = HTTPConnection(host)
        for path in some:
            connection.request("GET", f"/{path}", headers=headers)
            answer = connection.getresponse()
            if answer.status != 200 or not answer.read():
                raise RuntimeError(f"{path}: {answer.status}")
        connection.close()

    with ThreadPoolExecutor(6) as pool:
        start = time.perf_counter()
        list(pool.map(fetch, [paths[at::6] for at in range(6)]))
        return time.perf_counter() - start


def _catalogued(client: httpx.Client) -> None:
    while client.get("/api/t/0").json()["catalog"]["state"] == "making":
        time.sleep(0.05)


def _peak(process: subprocess.Popen[str]) -> int:
    """The most memory that a process had, in MB, without those that it started."""
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return round(int(found[1]) * 1024 / 1e6) if found else 0


def _row(what: str, seconds: list[float], most: float | None) -> str:
    target = f"at most {most:g} s" if most is not None else ""
    median, worst = statistics.median(seconds), max(seconds)
    return f"| {what} | **{median:.3f} s**, at most {worst:.3f} s | | | {target} |"

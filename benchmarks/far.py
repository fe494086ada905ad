"""An epoch of shards in a far store: 20 ms and 50 MB/s away, through a cache on disk.

Cold, warm, and with a cache half as large as the data; in random order and by blocks. Beside it the
same shards on this disk, all bytes of the link by eight threads, and, with `--peers-python`, Mosaic
streaming and WebDataset over the same payloads in their own formats.

With `--s3` the store is a bucket of the S3 server at `AWS_ENDPOINT_URL`, which should be near, as
the link is put before it.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import sys
import tarfile
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from urllib.request import urlopen

from benchmarks.pairs import Measured, row, run, served
from tfrecreg.core.records.writer import TFRecordWriter

__all__ = ["main"]

SIZE = 100_000
"""Bytes of a payload."""
SHARDS = 16
_FAR = (0.02, 50e6)
"""Latency in seconds, bandwidth in bytes a second."""
_BUCKET = "far"
_KEYS = {
    "AWS_ACCESS_KEY_ID": "benchmark",
    "AWS_SECRET_ACCESS_KEY": "benchmark",
    "AWS_DEFAULT_REGION": "us-east-1",
}
"""For the own server, which asks for none."""
_WRITE_MDS = """
import random, sys
from streaming import MDSWriter
source = random.Random(1)
with MDSWriter(out=sys.argv[1], columns={"x": "bytes"}, size_limit=int(sys.argv[3])) as out:
    for _ in range(int(sys.argv[2])):
        out.write({"x": source.randbytes(SIZE)})
""".replace("SIZE", str(SIZE))


def main(arguments: Namespace) -> list[str]:
    """Run it and return the rows of the table."""
    with tempfile.TemporaryDirectory(prefix="tfrecreg-bench-", dir=arguments.work) as work:
        folder, caches = Path(work) / "store" / _BUCKET, Path(work) / "caches"
        folder.mkdir(parents=True)
        total = _write(folder, arguments.count)
        if arguments.peers_python:
            _write_peers(arguments, folder, total)
        with _store(arguments, folder) as server, served(_module("far_link", server, *_FAR)) as url:
            rows = _ours(arguments, folder, caches, url, total)
            if arguments.peers_python:
                rows += _peers(arguments, folder, caches, url, 2 * total)
    return rows


def _module(name: str, *arguments: object) -> list[str]:
    return [sys.executable, "-m", f"benchmarks.{name}", *map(str, arguments)]


@contextmanager
def _store(arguments: Namespace, folder: Path) -> Iterator[str]:
    """The address of the store, which has the files of a folder."""
    if not arguments.s3:
        with served(_module("far_server", folder.parent)) as url:
            yield url.partition("://")[2]
        return
    import fsspec

    bucket = fsspec.filesystem("s3")
    bucket.mkdir(_BUCKET)
    # WebDataset reads by curl, and the link is measured without a signature.
    bucket.put(f"{folder}/", f"{_BUCKET}/", recursive=True, ACL="public-read")
    yield os.environ["AWS_ENDPOINT_URL"].partition("://")[2].rstrip("/")
    bucket.rm(_BUCKET, recursive=True)


def _ours(arguments: Namespace, folder: Path, caches: Path, url: str, total: int) -> list[str]:
    rows = []
    store = f"s3://{_BUCKET}" if arguments.s3 else f"{url}/{_BUCKET}"

    def once(order: str, place: str, cache: Path | None, limit: int, again: int = 0) -> Measured:
        found = run(
            _module("far_read", "ours", order, place, SHARDS, cache or "", limit, again),
            XDG_CACHE_HOME=str(caches / "user"),
            AWS_ENDPOINT_URL=url,
        )
        print(f"{order:7} {'local' if cache is None else url_stats(url)} {found.output.strip()}")
        return found

    bare = _bare(arguments, url)
    for order in ("random", "blocks"):
        cold, warm, half, local = [], [], [], []
        for number in range(arguments.runs):
            cache = caches / f"{order}-{number}"
            cold.append(once(order, store, cache, 2 * total))
            local.append(once(order, str(folder), None, 0, 1))
            warm.append(once(order, store, cache, 2 * total, 1))
            shutil.rmtree(cache)
            small = caches / f"half-{order}"
            once(order, store, small, total // 2)
            half.append(once(order, store, small, total // 2))
            shutil.rmtree(small)
        named = "in random order" if order == "random" else "by blocks of 1 / 64"
        rows += [
            row(f"{named}, cold: the link / ours", cold, bare, "at least 0.9", faster=True),
            row(f"{named}, warm: local / ours", warm, local, "at least 0.9", faster=True),
            row(
                f"{named}, warm, the next epoch: local / ours",
                [*map(_again, warm)],
                [*map(_again, local)],
                "at least 0.9",
                faster=True,
            ),
            row(
                f"{named}, half of it fits, second epoch: the link / ours",
                half,
                bare,
                "",
                faster=True,
            ),
        ]
    return rows


def _again(found: Measured) -> Measured:
    """The second epoch of a process."""
    numbers = re.search(r"again: seconds=([0-9.]+) processor=([0-9.]+)", found.output)
    assert numbers is not None
    return replace(found, inner=float(numbers[1]), work=float(numbers[2]))


def _bare(arguments: Namespace, url: str) -> list[Measured]:
    """What the link gives."""
    command = _module("far_read", "bare", f"{url}/{_BUCKET}", SHARDS)
    found = [run(command) for _ in range(arguments.runs)]
    url_stats(url)
    return found


def _peers(arguments: Namespace, folder: Path, caches: Path, url: str, limit: int) -> list[str]:
    rows = []

    def read(*words: object) -> list[str]:
        return [arguments.peers_python, *_module("far_read", *words)[1:]]

    commands: dict[str, Callable[[Path], list[str]]] = {
        "WebDataset, shards and a buffer of 1,000": lambda cache: read(
            "webdataset", f"{url}/{_BUCKET}", SHARDS, cache
        ),
        "Mosaic streaming, `py1e`": lambda cache: read(
            "mosaic", f"s3://{_BUCKET}/mds", cache, limit, "py1e"
        ),
        "Mosaic streaming, `naive`": lambda cache: read(
            "mosaic", f"s3://{_BUCKET}/mds", cache, limit, "naive"
        ),
    }
    bare = _bare(arguments, url)
    for name, command in commands.items():
        if "Mosaic" in name and not (folder / "mds/index.json").exists():
            continue
        found: dict[str, list[Measured]] = {"cold": [], "warm": []}
        for number in range(arguments.runs):
            cache = caches / f"peer-{number}"
            cache.mkdir(parents=True)
            for kind, measured in found.items():
                try:
                    measured.append(
                        run(
                            command(cache),
                            **{"S3_ENDPOINT_URL": url, **_KEYS, **os.environ},
                        )
                    )
                    print(name, kind, url_stats(url), measured[-1].output.strip()[-200:])
                except RuntimeError as error:
                    print(name, kind, error)
            shutil.rmtree(cache)
        rows += [
            row(f"{name}, {kind}: the link / theirs", measured, bare, "", faster=True)
            for kind, measured in found.items()
            if len(measured) == len(bare)
        ]
    return rows


def _write(folder: Path, count: int) -> int:
    """Shards with their indexes; the bytes of all."""
    source = random.Random(1)
    total = 0
    for shard in range(SHARDS):
        name = f"train-{shard:05d}-of-{SHARDS:05d}.tfrecord"
        with TFRecordWriter(folder / name, index=True) as out:
            for _ in range(count * shard // SHARDS, count * (shard + 1) // SHARDS):
                out.write({"x": source.randbytes(SIZE)})
        total += (folder / name).stat().st_size
    return total


def _write_peers(arguments: Namespace, folder: Path, total: int) -> None:
    _write_tars(folder, arguments.count)
    try:
        words = (folder / "mds", arguments.count, total // SHARDS)
        run([arguments.peers_python, "-c", _WRITE_MDS, *map(str, words)])
    except RuntimeError as error:
        print(f"no Mosaic streaming: {str(error).strip().splitlines()[-1]}")


def _write_tars(folder: Path, count: int) -> None:
    source = random.Random(1)
    for shard in range(SHARDS):
        with tarfile.open(folder / f"train-{shard:06d}.tar", "w") as tar:
            for number in range(count * shard // SHARDS, count * (shard + 1) // SHARDS):
                info = tarfile.TarInfo(f"{number:08d}.x")
                info.size = SIZE
                tar.addfile(info, BytesIO(source.randbytes(SIZE)))


def url_stats(url: str) -> str:
    """Requests and bytes since the last call."""
    with urlopen(f"{url}/stats") as answer:
        found = json.load(answer)
    return f"{found['requests']:6} requests {found['bytes'] / 1e6:8.1f} MB"

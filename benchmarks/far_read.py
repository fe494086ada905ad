"""One epoch of shards behind URLs, or of local ones; for `python -m benchmarks far`.

python -m benchmarks.far_read WHAT ORDER FOLDER_OR_URL SHARDS CACHE LIMIT AGAIN
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.request import urlopen

BATCH = 64
BLOCKS, WINDOW = 64, 2
"""Blocks of the data, 16 MB each of 1 GB; of 4 lanes with this window, an eighth is mixed."""


def ours(order: str, place: str, shards: int, cache: str, limit: str, again: str) -> None:
    import tfrecreg

    open_source = tfrecreg.data_source  # it is imported when it is named
    if "://" in place:
        import fsspec

        fsspec.get_filesystem_class(place.partition("://")[0])
    begin, work = time.perf_counter(), time.process_time()
    names = [f"{place}/train-{at:05d}-of-{shards:05d}.tfrecord" for at in range(shards)]
    source = open_source(
        names,
        "train",
        raw=True,
        cache=cache or None,
        cache_limit=int(limit) if cache else None,
    )
    opened = time.perf_counter() - begin
    block = len(source) // BLOCKS if order == "blocks" else None

    def epoch(seed: int) -> tuple[float, int]:
        chosen = source.order(seed=seed, block=block, block_window=WINDOW)
        size, first = 0, 0.0
        part: list[int] = []
        for number in source.reading_ahead(chosen):
            part.append(number)
            if len(part) == BATCH:
                size += sum(map(len, source.__getitems__(part)))
                first = first or time.perf_counter() - begin
                part = []
        return first, size + sum(map(len, source.__getitems__(part)))

    first, size = epoch(1)
    print(f"opened={opened:.2f}", end=" ")
    _said(begin, work, first, size)
    if int(again):
        begin, work = time.perf_counter(), time.process_time()
        first, size = epoch(2)
        print("again:", end=" ")
        _said(begin, work, first, size)


def bare(place: str, shards: int) -> None:
    """All bytes of the shards by eight threads: what the link gives."""
    from concurrent.futures import ThreadPoolExecutor

    begin, work = time.perf_counter(), time.process_time()
    names = [f"{place}/train-{at:05d}-of-{shards:05d}.tfrecord" for at in range(shards)]

    def fetched(name: str) -> int:
        with urlopen(name) as answer:
            size = 0
            while data := answer.read(1 << 20):
                size += len(data)
        return size

    with ThreadPoolExecutor(8) as pool:
        size = sum(pool.map(fetched, names))
    _said(begin, work, 0, size)


def mosaic(place: str, cache: str, limit: str, shuffle: str) -> None:
    from streaming import StreamingDataset  # type: ignore[import-not-found]

    begin, work = time.perf_counter(), time.process_time()
    dataset = StreamingDataset(
        remote=place,
        local=cache,
        shuffle=True,
        shuffle_algo=shuffle,
        shuffle_seed=1,
        cache_limit=int(limit),
        batch_size=BATCH,
        num_canonical_nodes=1,
    )
    _said(begin, work, *_read(dataset, begin))


def webdataset(place: str, shards: int, cache: str) -> None:
    import webdataset as wds  # type: ignore[import-untyped]

    begin, work = time.perf_counter(), time.process_time()
    names = f"{place}/train-{{000000..{shards - 1:06d}}}.tar"
    urls = names if Path(place).is_dir() else f"pipe:curl -s -f {names}"
    dataset = wds.WebDataset(
        urls, shardshuffle=shards, seed=1, cache_dir=cache or None, empty_check=False
    ).shuffle(1000)
    _said(begin, work, *_read(dataset, begin))


def _read(dataset: Iterable[Mapping[str, bytes]], begin: float) -> tuple[float, int]:
    """Seconds to the first batch, and the bytes of all samples."""
    size, first = 0, 0.0
    for count, sample in enumerate(dataset, 1):
        size += len(sample["x"])
        if count == BATCH:
            first = time.perf_counter() - begin
    return first, size


def _said(begin: float, work: float, first: float, size: int) -> None:
    print(
        f"seconds={time.perf_counter() - begin} processor={time.process_time() - work} "
        f"first={first} bytes={size}"
    )


if __name__ == "__main__":
    kind, *rest = sys.argv[1:]
    if kind == "ours":
        ours(rest[0], rest[1], int(rest[2]), *rest[3:])
    elif kind == "bare":
        bare(rest[0], int(rest[1]))
    elif kind == "mosaic":
        mosaic(*rest)
    else:
        webdataset(rest[0], int(rest[1]), rest[2])

"""Shards in memory, and a reader's whole account of one."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import memory_support
import pytest
from memory_support import MemoryReader, MemoryStorage, Seen

from tfrecreg.core.records import scanner as scanner_module
from tfrecreg.core.records.framing import frame
from tfrecreg.core.records.gzip_writer import MEMBER_BYTES, GzipEncoder
from tfrecreg.core.values.errors import FailureError


@dataclass
class Shard:
    """A small shard, and what is in it."""

    payloads: list[bytes]
    offsets: list[int]
    stream: bytes
    records: list[tuple[int, int, bytes | None]]

    def record_at(self, byte: int) -> int:
        """The number of the record that this byte of the stream belongs to."""
        return max(number for number, start in enumerate(self.offsets) if start <= byte)

    def without(self, number: int) -> list[tuple[int, int, bytes | None]]:
        return self.records[:number] + self.records[number + 1 :]


@pytest.fixture(scope="session")
def memory_reader() -> type[MemoryReader]:
    return MemoryReader


@pytest.fixture(scope="session")
def memory_storage() -> type[MemoryStorage]:
    return MemoryStorage


@pytest.fixture(scope="session")
def see() -> Callable[..., Seen]:
    """Scan bytes and collect everything."""
    return memory_support.see


@pytest.fixture(scope="session")
def shard() -> Callable[[Sequence[bytes]], Shard]:
    """Frame payloads to a stream."""

    def make(payloads: Sequence[bytes]) -> Shard:
        offsets: list[int] = []
        stream = bytearray()
        for payload in payloads:
            header, footer = frame(payload)
            offsets.append(len(stream))
            stream += header + payload + footer
        records = [(n, o, p) for n, (o, p) in enumerate(zip(offsets, payloads, strict=True))]
        return Shard(list(payloads), offsets, bytes(stream), records)

    return make


@pytest.fixture(scope="session")
def small_shard(shard: Callable[[Sequence[bytes]], Shard]) -> Shard:
    """200 records of 0 to 200 bytes."""
    source = random.Random(20240229)
    return shard([source.randbytes(source.choice((0, 1, 5, 20, 60, 200))) for _ in range(200)])


@pytest.fixture(scope="session")
def compress() -> Callable[..., tuple[bytes, list[tuple[int, int]]]]:
    """A shard's stream as our writer compresses it, with small members if asked."""

    def compressed(made: Shard, member_bytes: int = MEMBER_BYTES) -> Any:
        encoder = GzipEncoder(member_bytes)
        ends = [*made.offsets[1:], len(made.stream)] if made.offsets else []
        parts = [
            encoder.write(made.stream[start:end])
            for start, end in zip(made.offsets, ends, strict=True)
        ]
        return b"".join(parts) + encoder.close(), encoder.members

    return compressed


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The compiled scanner's library: the one that is installed, else one made for the tests."""
    try:
        scanner_module.load_scanner()
    except FailureError:
        pass
    else:
        yield scanner_module.LIBRARY
        return
    hatch_build = pytest.importorskip("hatch_build", reason="the checkout's build hook is needed")
    library = tmp_path_factory.mktemp("compiled") / scanner_module.LIBRARY.name
    try:
        hatch_build.compile_scanner(scanner_module.SOURCE, library, os.environ)
    except hatch_build.NotCompiledError as error:
        pytest.skip(f"the scanner cannot be compiled here: {error}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scanner_module, "LIBRARY", library)
        scanner_module.load_scanner.cache_clear()
        yield library
    scanner_module.load_scanner.cache_clear()

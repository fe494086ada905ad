"""Shards, storages and validators for scans. Workers import it by name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from check_support import framed
from engines_support import Trap

from tfrecreg.core.check.scan.interface import Need, Shard, Target
from tfrecreg.core.check.scan.tally import Tally
from tfrecreg.core.example.model import Feature, encode
from tfrecreg.core.example.values import bytes_feature
from tfrecreg.core.records.batch import Fault, RecordBatch, StreamEnd
from tfrecreg.core.storage.interface import Reader, Storage
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import StorageError
from tfrecreg.core.values.findings import Code, Finding, Measure, Severity


def write_examples(path: Path, examples: Iterable[dict[str, Feature]]) -> Path:
    path.write_bytes(framed(*map(encode, examples)))
    return path


ODD = Code("ODD001", "odd-record", Severity.ERROR, "a record is odd", "make it even", "A page.")


def payload(number: int) -> bytes:
    return encode({"text": bytes_feature(f"{number:05d}".encode() * 8)})


def stream(count: int) -> bytes:
    return framed(*map(payload, range(count)))


def shard(storage: Storage, path: str, split: str = "", number: int = 0) -> Shard:
    return Shard(split, number, path, storage, path)


def target(*shards: Shard, **more: Any) -> Target:
    values = dict.fromkeys(("storage", "manifest", "schema", "schema_path", "raw")) | more
    return Target("files", "files", "", shards, **values)


def files(folder: Path, *streams: bytes, storage: Storage | None = None, **more: Any) -> Target:
    """A target of `folder`'s new files ``0.tfrecord``, ``1.tfrecord`` …"""
    for number, data in enumerate(streams):
        (folder / f"{number}.tfrecord").write_bytes(data)
    place = storage if storage is not None else LocalStorage(folder)
    shards = [shard(place, f"{number}.tfrecord", "train", number) for number in range(len(streams))]
    return target(*shards, **more)


@dataclass(frozen=True)
class Watched:
    """A storage that records reads, and fails where it is told: permissions do not stop root."""

    inner: LocalStorage
    fails: Mapping[str, int] = field(default_factory=dict)
    """Path of a file to the byte from which on reading it fails; below 0 it cannot be opened."""
    reads: list[int] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "inner":  # while it is unpickled
            raise AttributeError(name)
        return getattr(self.inner, name)

    def open(self, path: str) -> Reader:
        self.opened.append(path)
        fails_at = self.fails.get(path)
        if fails_at is not None and fails_at < 0:
            raise StorageError(f"cannot read `{path}`: Permission denied", hint="`ls -ld` on it")
        reader = self.inner.open(path)
        inner = reader.read_at

        def read_at(start: int, length: int) -> bytes:
            self.reads.append(length)
            if fails_at is not None and start + length > fails_at:
                raise StorageError(f"cannot read `{path}`: Input/output error")
            return inner(start, length)

        reader.read_at = read_at  # type: ignore[method-assign]  # noted, then read
        return reader

    def read(self, path: str, *, limit: int = 1 << 28) -> bytes:
        self.opened.append(path)
        return self.inner.read(path, limit=limit)


class Looking:
    """A validator that counts, and finds every record whose number is odd, after what is `said`.

    Its name and the failing method can be chosen: `begin`, `make`, `batch`, `fault`, `close`,
    `part` (a part that cannot be pickled), `trap` (one that cannot be unpickled), `finish`,
    `late` (after a first finding), `exit` (in `batch`), `lambda` (a maker that cannot be pickled).
    """

    codes: Sequence[Code] = (ODD,)

    def __init__(
        self, name: str = "looking", wrong: str = "", needs: Any = None, said: Any = ()
    ) -> None:
        self.name = name
        self.wrong = wrong
        self.said = said
        self.needs = Need(0) if needs is None else needs
        self.options: Mapping[str, Any] = {}

    def applies(self, target: Target) -> str | None:
        return None

    def begin(self, target: Target, options: Mapping[str, Any]) -> Callable[[Shard], Eye]:
        _go_wrong(self.wrong == "begin")
        print("beginning")
        self.options = options
        if self.wrong == "lambda":
            return lambda shard: Eye("", shard)
        return partial(Eye, self.wrong)

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, Any]]
    ) -> Iterator[Finding | Measure]:
        _go_wrong(self.wrong == "finish")
        total, records = Tally(), 0
        for _, (tally, seen) in parts:
            total.merge(tally)
            records += seen
        yield from self.said
        yield from total.findings(target.dataset)
        _go_wrong(self.wrong == "late")
        yield Measure(f"{self.name}.records", records, f"{records} records")


class Eye:
    def __init__(self, wrong: str, shard: Shard) -> None:
        _go_wrong(wrong == "make")
        print("looking at", shard.name)
        self.wrong, self.shard = wrong, shard
        self.tally = Tally()
        self.records = 0

    def batch(self, batch: RecordBatch) -> None:
        if self.wrong == "exit":
            sys.exit(0)
        _go_wrong(self.wrong == "batch")
        self.records += len(batch)
        for position in range(len(batch)):
            if (batch.first + position) % 2:
                where = self.shard.locate(batch, position)
                self.tally.add(ODD, "the number is odd", where, split=self.shard.split)

    def fault(self, fault: Fault) -> None:
        _go_wrong(self.wrong == "fault")

    def close(self, end: StreamEnd) -> Any:
        _go_wrong(self.wrong == "close")
        parts = {"part": lambda: None, "trap": Trap()}
        return parts.get(self.wrong, (self.tally, self.records))


def _go_wrong(really: bool) -> None:
    if really:
        raise ZeroDivisionError("a bug, \x1b[31mred\nand a second line")

"""Shards, storages and validators for scans. Workers import it by name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tfrecreg.core.check.scan.interface import Need, Shard, Target
from tfrecreg.core.check.scan.tally import Tally
from tfrecreg.core.example.model import encode
from tfrecreg.core.example.values import bytes_feature
from tfrecreg.core.records.batch import Fault, RecordBatch, StreamEnd
from tfrecreg.core.records.framing import frame
from tfrecreg.core.storage.interface import Reader, Storage
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import StorageError
from tfrecreg.core.values.findings import Code, Finding, Location, Measure, Severity, fingerprint

ODD = Code("ODD001", "odd-record", Severity.ERROR, "a record is odd", "make it even", "A page.")


def payload(number: int, size: int = 40) -> bytes:
    """An Example whose one feature is as long as is asked."""
    return encode({"text": bytes_feature(f"{number:05d}".encode() * (size // 5))})


def stream(count: int, size: int = 40, first: int = 0) -> bytes:
    return b"".join(map(framed, (payload(first + each, size) for each in range(count))))


def framed(data: bytes) -> bytes:
    """A payload as a record of a stream."""
    header, footer = frame(data)
    return header + data + footer


def shard(storage: Storage, path: str, split: str = "", number: int = 0, **more: Any) -> Shard:
    values = {"declared": None, "entry": None, "index": None, "name": path, **more}
    return Shard(split=split, number=number, storage=storage, path=path, **values)


def target(*shards: Shard, **more: Any) -> Target:
    values: dict[str, Any] = {
        "name": "files",
        "kind": "files",
        "dataset": "",
        "storage": None,
        "manifest": None,
        "schema": None,
        "schema_path": None,
        "raw": None,
        **more,
    }
    return Target(shards=shards, **values)


def files(folder: Path, *streams: bytes, storage: Storage | None = None, **more: Any) -> Target:
    """A target of `folder`'s new files ``0.tfrecord``, ``1.tfrecord`` …"""
    for number, data in enumerate(streams):
        (folder / f"{number}.tfrecord").write_bytes(data)
    place = storage if storage is not None else LocalStorage(folder)
    shards = [shard(place, f"{number}.tfrecord", "train", number) for number in range(len(streams))]
    return target(*shards, **more)


@dataclass
class Counting:
    """A storage that records reads."""

    inner: LocalStorage
    reads: list[tuple[str, int, int]] = field(default_factory=list)
    """Path, start and length of every `read_at`."""
    opened: list[str] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def open(self, path: str) -> Reader:
        self.opened.append(path)
        reader = self.inner.open(path)
        inner = reader.read_at

        def read_at(start: int, length: int) -> bytes:
            self.reads.append((path, start, length))
            return inner(start, length)

        reader.read_at = read_at  # type: ignore[method-assign]  # noted, then read
        return reader

    def read(self, path: str, *, limit: int = 1 << 28) -> bytes:
        self.opened.append(path)
        return self.inner.read(path, limit=limit)


class _Failing:
    """A file that the disk fails to deliver from some byte on."""

    def __init__(self, reader: Reader, path: str, at: int) -> None:
        self._reader, self._path, self._at = reader, path, at
        self.size = reader.size

    def read_at(self, start: int, length: int) -> bytes:
        if start + length > self._at:
            raise StorageError(f"cannot read `{self._path}`: Input/output error")
        return self._reader.read_at(start, length)

    def close(self) -> None:
        self._reader.close()

    def __enter__(self) -> _Failing:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


@dataclass(frozen=True)
class Broken:
    """A storage with unreadable files, because permissions do not stop root."""

    inner: LocalStorage
    fails: Mapping[str, int]
    """File name to the byte from which on reading it fails; below 0 it cannot be opened."""

    @property
    def root(self) -> str:
        return self.inner.root

    def open(self, path: str) -> Any:
        at = self.fails.get(Path(path).name)
        if at is None:
            return self.inner.open(path)
        if at < 0:
            raise StorageError(f"cannot read `{path}`: Permission denied", hint="`ls -ld` on it")
        return _Failing(self.inner.open(path), path, at)

    def read(self, path: str, *, limit: int = 1 << 28) -> bytes:
        return self.inner.read(path, limit=limit)


class Looking:
    """A validator that counts, and finds every record whose number is odd.

    Its name and the failing method can be chosen: `begin`, `make`, `batch`, `fault`, `close`,
    `part` (a part that cannot be pickled), `trap` (one that cannot be unpickled), `finish`,
    `late` (after a first finding), `exit` (in `batch`), `lambda` (a maker that cannot be pickled).
    """

    codes: Sequence[Code] = (ODD,)

    def __init__(self, name: str = "looking", wrong: str = "", needs: Any = None) -> None:
        self.name = name
        self.wrong = wrong
        self.needs = Need(0) if needs is None else needs
        self.options: Mapping[str, Any] = {}
        self.order: list[str] = []

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
        for shard, (tally, seen) in parts:
            self.order.append(shard.name)
            total.merge(tally)
            records += seen
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
        for position in range(len(batch)):
            number = batch.first + position
            self.records += 1
            if number % 2:
                where = Location(
                    split=self.shard.split,
                    shard=self.shard.name,
                    record=number,
                    offset=batch.offsets[position],
                )
                self.tally.add(ODD, "the number is odd", where, split=self.shard.split)

    def fault(self, fault: Fault) -> None:
        _go_wrong(self.wrong == "fault")

    def close(self, end: StreamEnd) -> Any:
        _go_wrong(self.wrong == "close")
        if self.wrong == "part":
            return lambda: None
        if self.wrong == "trap":
            return Trap()
        return self.tally, self.records


class Trap:
    """What can be packed and not unpacked."""

    def __reduce__(self) -> tuple[object, ...]:
        return _spring, ()


def _spring() -> None:
    raise ValueError("it is a trap")


def _go_wrong(really: bool) -> None:
    if really:
        raise ZeroDivisionError("a bug, \x1b[31mred\nand a second line")


class Saying:
    """A validator with given findings."""

    codes: Sequence[Code] = ()
    needs = Need(0)

    def __init__(self, *said: Any, name: str = "saying") -> None:
        self.said = said
        self.name = name

    def applies(self, target: Target) -> str | None:
        return None

    def begin(self, target: Target, options: Mapping[str, Any]) -> Callable[[Shard], Eye]:
        return partial(Eye, "")

    def finish(self, target: Target, parts: Any) -> Iterator[Any]:
        yield from self.said


def finding(**changes: Any) -> Finding:
    values: dict[str, Any] = {
        "code": ODD.code,
        "rule": ODD.rule,
        "severity": ODD.severity,
        "message": "the number is odd",
        "hint": ODD.hint,
        "fingerprint": fingerprint(ODD.code, dataset=""),
        "count": 1,
        **changes,
    }
    return Finding(**values)

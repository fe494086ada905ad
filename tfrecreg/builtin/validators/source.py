"""The `source` validator: compares images with their raw files, and the ledger with the records.

If records have `image/encoded` and `image/key/sha256`, each image is compared with its digest. With
`check --raw`, an image is compared with its raw file, if the source can find that file by the
record's key. If there is a manifest, its ledger is compared with the records.
"""

from __future__ import annotations

import hashlib
import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec

from tfrecreg.core.build.sources.guarded import GuardedSource
from tfrecreg.core.check.scan.indexes import index_of
from tfrecreg.core.check.scan.interface import Shard, Target, Validator, Visitor
from tfrecreg.core.check.scan.tally import JsonCodec, Tally, key_from
from tfrecreg.core.example.model import Example, Kind
from tfrecreg.core.plugins.entry_points import is_local
from tfrecreg.core.plugins.manager import plugins, plugins_of
from tfrecreg.core.records.batch import Fault, RecordBatch, StreamEnd
from tfrecreg.core.records.index import Index
from tfrecreg.core.registry.manifest import (
    LEDGER_NAME,
    Ledger,
    Manifest,
    is_adopted,
    is_python_data,
)
from tfrecreg.core.storage.interface import Readable, Storage
from tfrecreg.core.storage.raw import raw_storage
from tfrecreg.core.storage.remote_reader import ReadingFile
from tfrecreg.core.values.codes import SRC016, SRC017, SRC019, SRC047, SRC048, SRC091
from tfrecreg.core.values.errors import (
    MissingFileError,
    PluginError,
    TfrecregError,
    UnknownPluginError,
)
from tfrecreg.core.values.findings import Code, Finding, Location, Measure
from tfrecreg.core.values.text import safe

IMAGE = "image/encoded"
_DIGEST = "image/key/sha256"
_BLOCK = 1 << 20


@dataclass(slots=True)
class SourcePart:
    """The result for one shard."""

    damaged: bool = False
    """Whether the scanner found a fault. After a fault, missing records are expected."""
    records: int = 0
    images: int = 0
    """Number of images compared with their digest."""
    compared: int = 0
    """Number of images compared with their raw files."""
    tally: Tally = field(default_factory=Tally)


class SourceValidator(Validator):
    """Compares images with their digests and raw files, and the ledger with the records."""

    name = "source"
    codes: Sequence[Code] = (SRC016, SRC017, SRC019, SRC047, SRC091)
    part_codec = JsonCodec(SourcePart, codes)

    def __init__(self) -> None:
        self._not_compared = ""

    def applies(self, target: Target) -> str | None:
        manifest = target.manifest
        if manifest is None or manifest.ledger or _DIGEST in manifest.features:
            return None
        return f"there is neither a ledger nor a feature `{_DIGEST}`"

    def begin(self, target: Target, options: Mapping[str, Any]) -> Callable[[Shard], SourceVisitor]:  # noqa: ARG002 - it has no options
        manifest, folder = target.manifest, target.raw_folder
        raw = raw_storage(folder) if folder is not None else None
        source: GuardedSource | None = None
        if manifest is not None and raw is not None:
            source, self._not_compared = _locating_source(manifest, raw, target.home)
        look = manifest is None or _DIGEST in manifest.features or source is not None
        return partial(SourceVisitor, look=look, source=source, raw=raw)

    def part_key(self, target: Target, options: Mapping[str, Any]) -> str | None:  # noqa: ARG002 - it has none
        if target.raw_folder is not None:
            return None  # raw files may change while the shards do not
        manifest = target.manifest
        return key_from("look" if manifest is None or _DIGEST in manifest.features else None)

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, SourcePart]]
    ) -> Iterator[Finding | Measure]:
        tally = Tally()
        records: Counter[str] = Counter()
        images = compared = 0
        for shard, part in parts:
            tally.merge(part.tally)
            images += part.images
            compared += part.compared
            # The `CRC` findings report the loss of a damaged shard, and not the ledger.
            planned = shard.entry if part.damaged else None
            records[shard.split] += part.records if planned is None else planned.records
        if target.manifest is not None and target.manifest.ledger:
            _reconcile(tally, target, target.manifest, records)
            _repeat_dropped(tally, target.manifest)
        yield Measure(
            "source.images", images, f"{images} images were compared with their own digest"
        )
        if target.raw_folder is not None:
            text = self._not_compared or f"{compared} images were compared with their raw files"
            yield Measure("source.compared", compared, text)
            if self._not_compared:
                yield Measure("source.not_compared", self._not_compared, self._not_compared)
        yield from tally.findings(target.dataset)


def _locating_source(
    manifest: Manifest, raw: Readable, home: Storage | None
) -> tuple[GuardedSource | None, str]:
    """Open the dataset's source on the raw folder. If that fails, return None and the reason."""
    name = manifest.source.plugin
    if not name or is_adopted(manifest) or is_python_data(manifest):
        return None, "not compared: no source made the records from raw files"
    known = plugins()
    if home is not None and is_local(name):
        from tfrecreg.core.registry.registry import Registry  # few sources are local

        known = plugins_of(Registry(home).config)
    try:
        options, _ = known.source_options(name, manifest.source.options)
        source = known.open_source(name, raw, options)
        if not source.locates:
            why = f"the source `{safe(name)}` does not make records from single files"
            return None, f"not compared: {why}"
        for split in manifest.splits[:1]:
            # Called here, so that a folder with another layout is reported only once.
            source.raw_path(split.name, "any")
    except TfrecregError as error:
        if isinstance(error, PluginError) and not isinstance(error, UnknownPluginError):
            raise  # a failing plugin must not let the check pass
        return None, f"not compared: {error.message}"
    return source, ""


class SourceVisitor(Visitor):
    """Compares the records of one shard."""

    def __init__(
        self, shard: Shard, *, look: bool, source: GuardedSource | None, raw: Readable | None
    ) -> None:
        self._shard = shard
        self._look = look
        self._part = SourcePart()
        self._raw: tuple[GuardedSource, Readable, Index] | None = None
        """What finds the raw file of a record, if images are compared with raw files."""
        if source is not None and raw is not None and (index := index_of(shard)) is not None:
            self._raw = source, raw, index

    def batch(self, batch: RecordBatch) -> None:
        if not self._look or not batch.whole:
            return
        for position, example in enumerate(batch.examples):
            if example is not None:
                self._compare(example, batch, position)

    def fault(self, fault: Fault) -> None:
        del fault
        self._part.damaged = True

    def close(self, end: StreamEnd) -> SourcePart:
        self._part.records = end.records
        return self._part

    def _compare(self, example: Example, batch: RecordBatch, position: int) -> None:
        image = _single(example, IMAGE)
        if image is None:
            return
        digest = _single(example, _DIGEST)
        if digest is not None:
            self._part.images += 1
            found = hashlib.sha256(image).hexdigest()
            if digest.lower() != found.encode():
                message = f"`{_DIGEST}` is not the SHA-256 of `{IMAGE}`"
                expected = safe(digest[:16].decode("utf-8", "backslashreplace"))
                detail = f"expected {expected}…, found {found[:16]}…"
                self._add(SRC016, message, detail, batch, position)
        self._compare_raw(image, batch, position)

    def _compare_raw(self, image: bytes, batch: RecordBatch, position: int) -> None:
        if self._raw is None:
            return
        source, raw, index = self._raw
        number = batch.first + position
        path = None
        if number < len(index):
            path = source.raw_path(self._shard.split, index.key(number))
        if path is None:
            return
        try:
            with raw.open(path) as file:
                size = file.size
                same = size == len(image) and file.read_at(0, size) == image
        except MissingFileError:
            detail = f"expected `{safe(path)}`"
            message = "the raw file that its key names does not exist"
            self._add(SRC091, message, detail, batch, position)
            return
        self._part.compared += 1
        if not same:
            detail = f"`{safe(path)}` has {size} bytes, but the record's image has {len(image)}"
            message = f"`{IMAGE}` differs from the raw file that its key names"
            self._add(SRC017, message, detail, batch, position)

    def _add(
        self, code: Code, message: str, detail: str, batch: RecordBatch, position: int
    ) -> None:
        self._part.tally.add_record(self._shard, batch, position, code, IMAGE, message, detail)


def _single(example: Example, name: str) -> bytes | None:
    """The value of a feature of bytes; None unless it has exactly one."""
    feature = example.get(name)
    if feature is None or feature.kind is not Kind.BYTES or feature.count != 1:
        return None
    value: bytes = feature.values[0]
    return value


def _reconcile(
    tally: Tally, target: Target, manifest: Manifest, records: Mapping[str, int]
) -> None:
    """Find SRC019: the ledger contradicts the records, its own counts, or its list of items."""
    for split, ledger in sorted(manifest.ledger.items()):
        planned = sum(entry.records for entry in manifest.shards if entry.split == split)
        # Missing shards and wrong counts of records are reported as `SHD`.
        present = {shard.path for shard in target.shards if shard.split == split}
        whole = all(e.path in present for e in manifest.shards if e.split == split)
        found = records.get(split, 0) if whole else planned
        if ledger.written != found:
            _disagree(tally, split, f"expected {ledger.written} records, found {found}")
        skipped = sum(ledger.skipped.values())
        if ledger.items != ledger.written + skipped:
            found_items = f"{ledger.written} written and {skipped} skipped"
            _disagree(tally, split, f"expected {ledger.items} items, found {found_items}")
    for split in sorted(set(records) - set(manifest.ledger)):
        _disagree(tally, split, f"expected no records, found {records[split]}")
    if target.storage is not None and target.storage.stat(LEDGER_NAME) is not None:
        listed = _listed(target.storage)
        for split, ledger in sorted(manifest.ledger.items()):
            _compare_list(tally, split, ledger, listed)


def _repeat_dropped(tally: Tally, manifest: Manifest) -> None:
    """Find SRC047: objects that the build dropped, according to its ledger."""
    for split, ledger in sorted(manifest.ledger.items()):
        if dropped := ledger.remarks.get(SRC047.code, 0):
            message = f"{SRC047.count_text(dropped)} by the build"
            if bare := ledger.remarks.get(SRC048.code, 0):
                message += f", {SRC048.count_text(bare)}"
            tally.add(SRC047, message, Location(split=split), split=split)


def _compare_list(
    tally: Tally, split: str, ledger: Ledger, listed: Mapping[tuple[str, str], int] | None
) -> None:
    if listed is None:
        _disagree(tally, split, f"`{LEDGER_NAME}` does not parse")
        return
    # A code can have skipped items and items with a remark.
    expected = Counter(ledger.skipped)
    expected.update(ledger.remarks)
    found = {code: times for (where, code), times in listed.items() if where == split}
    for code in sorted(expected.keys() | found.keys()):
        wanted, there = expected.get(code, 0), found.get(code, 0)
        if wanted != there:
            where = f"of {safe(code)} in `{LEDGER_NAME}`"
            _disagree(tally, split, f"expected {wanted} {where}, found {there}")


def _disagree(tally: Tally, split: str, message: str) -> None:
    tally.add(SRC019, message, Location(split=split), split=split)


def _listed(storage: Readable) -> dict[tuple[str, str], int] | None:
    """Count the ledger's lines for each split and code. Return None if a line does not parse."""
    counts: Counter[tuple[str, str]] = Counter()
    try:
        with storage.open(LEDGER_NAME) as file:
            for line in io.BufferedReader(ReadingFile(file), _BLOCK):
                entry = msgspec.json.decode(line)
                counts[str(entry["split"]), str(entry["code"])] += int(entry.get("times", 1))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return counts

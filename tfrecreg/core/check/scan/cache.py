"""Results of the last `check --cached`, for shards that have not changed since.

Each shard has an entry: a small file with a JSON text and the digest of this text. An entry holds
the size, modification time and inode of the shard and of its index, the totals of the scan, and
each validator's part. An entry is used only if these three facts, and everything else on which the
entry's parts depend, are unchanged. An entry has no pickles, so none of its content is executed. A
check without `--cached` removes the entries of its shards, because it may find damage that leaves
size, time and inode unchanged.

As in git's index, a file that changed less than two seconds before the scan is not cached, because
its time would not reveal the next change.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from blake3 import blake3

from tfrecreg._version import __version__
from tfrecreg.core.check.scan.interface import Cacheable, Part, Shard, Target, Validator
from tfrecreg.core.plugins.bundled import OURS
from tfrecreg.core.plugins.code_digest import code_of
from tfrecreg.core.plugins.guard import PluginId, calling, reason_of, traced
from tfrecreg.core.records.batch import StreamEnd
from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.values.documents import read_note
from tfrecreg.core.values.errors import StorageError, TfrecregError
from tfrecreg.core.values.text import safe

RACY_NS = 2_000_000_000
"""Minimum age of a file before a scan (ns). Some file systems store times in steps of 2 s."""
_LIMIT = 1 << 26
"""Maximum size of an entry in bytes; larger entries are ignored."""


class Stamp(NamedTuple):
    """The state of a shard's file, and of the index that the scan uses after damage."""

    size: int
    mtime_ns: int
    inode: int
    beside: tuple[int, int, int] | None
    """Size, modification time and inode of the index; None without one."""


class _Part(msgspec.Struct, frozen=True):
    key: str
    """Digest of everything that the part depends on, except the shard's bytes."""
    data: bytes


class _Entry(msgspec.Struct, frozen=True):
    stamp: Stamp
    end: StreamEnd
    parts: dict[str, _Part]


class ScanCache:
    """The cache entries on this machine, and their use by one scan."""

    def __init__(self, storage: Storage, folder: str, *, reuse: bool) -> None:
        self.reuse = reuse
        self.problem = ""
        """Why entries could not be written; empty if there was no error."""
        self._storage = storage
        self._folder = folder
        self._looking: Sequence[tuple[PluginId, Validator, str | None]] = ()
        self._digest = False
        self._stamps: dict[int, Stamp | None] = {}
        """The state of each shard before the scan, by position; None if it may not show changes."""

    def prepare(
        self, looking: Sequence[tuple[PluginId, Validator, str | None]], *, digest: bool
    ) -> None:
        """Begin a scan with validators, each with its plugin and the key of its parts."""
        self._looking, self._digest, self._stamps = looking, digest, {}

    def recall(self, number: int, shard: Shard) -> tuple[StreamEnd, list[Part]] | None:
        """Cached totals and parts of the shard at position `number`; None if they are unusable."""
        if not self.reuse:
            self._forget(shard)
            return None
        now, stamp = time.time_ns(), _stamp(shard)
        if stamp is not None and now - stamp.mtime_ns < RACY_NS:
            stamp = None
        self._stamps[number] = stamp
        if stamp is None or any(key is None for _, _, key in self._looking):
            return None
        entry = self._read(shard)
        if entry is None or entry.stamp != stamp or (self._digest and entry.end.blake3 is None):
            return None
        parts: list[Part] = []
        for plugin_id, validator, key in self._looking:
            part = entry.parts.get(plugin_id.name)
            if part is None or part.key != _digest(shard, plugin_id.name, str(key)):
                return None
            try:
                with calling():
                    if isinstance(validator, Cacheable):
                        parts.append(validator.part_codec.unpack(part.data))
            except Exception:
                return None  # If a part cannot be unpacked, the shard is read instead.
        return entry.end, parts

    def remember(
        self, number: int, shard: Shard, end: StreamEnd | None, parts: Mapping[PluginId, Part]
    ) -> list[tuple[PluginId, str]]:
        """Store the results of a shard. Returns the validators whose parts cannot be packed."""
        mistakes: list[tuple[PluginId, str]] = []
        if number not in self._stamps:
            return mistakes
        stamp = self._stamps[number]
        if end is None or stamp is None or _stamp(shard) != stamp:
            self._forget(shard)
            return mistakes
        packed: dict[str, _Part] = {}
        for plugin_id, validator, key in self._looking:
            if key is None or plugin_id not in parts or not isinstance(validator, Cacheable):
                continue
            try:
                with calling():
                    data = validator.part_codec.pack(parts[plugin_id])
            except UnicodeEncodeError:
                continue  # A shard whose name is not UTF-8 is read each time.
            except Exception as error:
                mistakes.append((plugin_id, reason_of(traced(error))))
                continue
            if data is not None:
                packed[plugin_id.name] = _Part(_digest(shard, plugin_id.name, key), data)
        self._write(shard, _Entry(stamp, end, packed))
        return mistakes

    def _forget(self, shard: Shard) -> None:
        try:
            if self._storage.stat(self._entry_path(shard)) is not None:
                self._storage.remove(self._entry_path(shard))
        except StorageError as error:
            self.problem = self.problem or error.message

    def _entry_path(self, shard: Shard) -> str:
        place = f"{shard.storage.root}\0{shard.path}".encode("utf-8", "surrogateescape")
        name = blake3(place).hexdigest()
        return f"{self._folder}/{name[:2]}/{name[2:]}.json"

    def _read(self, shard: Shard) -> _Entry | None:
        path = self._entry_path(shard)
        try:
            if self._storage.stat(path) is None:
                return None
            digest, _, text = self._storage.read(path, limit=_LIMIT).partition(b"\n")
            if digest.decode("ascii", "replace") != blake3(text).hexdigest():
                return None
            return read_note(text, _Entry)
        except (TfrecregError, ValueError):
            return None  # An invalid entry only means that the shard is read.

    def _write(self, shard: Shard, entry: _Entry) -> None:
        try:
            text = msgspec.json.encode(entry)
            with self._storage.create(self._entry_path(shard), durable=False) as writer:
                writer.write(blake3(text).hexdigest().encode("ascii") + b"\n" + text)
        except TfrecregError as error:
            self.problem = self.problem or error.message
        except (TypeError, ValueError) as error:  # of a plugin's part
            self.problem = self.problem or f"a result cannot be kept: {safe(str(error), limit=200)}"


def _stamp(shard: Shard) -> Stamp | None:
    try:
        entry = shard.storage.stat(shard.path)
        beside = shard.storage.stat(shard.index) if shard.index is not None else None
    except TfrecregError:
        return None
    if entry is None or entry.kind != "file":
        return None
    index = (beside.size, beside.mtime_ns, beside.inode) if beside is not None else None
    return Stamp(entry.size, entry.mtime_ns, entry.inode, index)


def _digest(shard: Shard, validator: str, key: str) -> str:
    """Digest of everything that a part depends on, except the shard's bytes."""
    entry = msgspec.json.encode(shard.entry).hex() if shard.entry is not None else ""
    ours = f"{__version__} {code_of(OURS)}".rstrip()
    fields = (ours, validator, key, shard.split, shard.number, shard.name, shard.declared)
    text = "\0".join(f"{len(str(each))}:{each}" for each in (*fields, entry))
    return blake3(text.encode("utf-8", "surrogateescape")).hexdigest()


def key_of(
    validator: Validator, target: Target, options: Mapping[str, Any], plugin_id: PluginId
) -> str | None:
    """The text that goes into the keys of all parts of a validator; None if no part is cached."""
    if not isinstance(validator, Cacheable):  # a plugin's class need not inherit from Validator
        return None
    key = validator.part_key(target, options)
    if key is None or validator.part_codec is None:
        return None
    kind = type(validator)
    code = code_of(plugin_id.distribution, kind.__module__)
    return f"{plugin_id.version}:{code}:{kind.__module__}.{kind.__qualname__}:{key}"

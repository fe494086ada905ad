"""Results of earlier scans of shards that did not change since: `check --cached`.

An entry, one per shard, is a small JSON file with a digest of its own: the shard's size,
modification time and inode, the totals of the scan, and each validator's part. It is used only if
the shard's state and everything that a part depends on are the same. Its content is never executed:
no pickle.

As in git's index, a file that was changed less than two seconds before the scan is not cached: its
time would not reveal the next change.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
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

FORMAT = 1
"""Format of the entries. Entries of another format are ignored."""
RACY_NS = 2_000_000_000
"""Minimum age of a file at the scan, in nanoseconds: some file systems store times in steps of 2
s.
"""
_LIMIT = 1 << 26
"""Maximum size of an entry in bytes; larger ones are ignored."""


class Stamp(NamedTuple):
    """The state of a shard's file, and of its index, which the scan uses after damage."""

    size: int
    mtime_ns: int
    inode: int
    beside: tuple[int, int, int] | None
    """The same values for its index; None without one."""


class _EarlierScan(NamedTuple):
    """The entry of a shard from an earlier scan."""

    end: StreamEnd
    parts: Mapping[str, bytes]
    """By validator, packed."""


class _Part(msgspec.Struct, frozen=True):
    key: str
    """Digest of everything that the part depends on besides the shard's bytes."""
    data: bytes


class _Entry(msgspec.Struct, frozen=True):
    format: int
    stamp: Stamp
    end: StreamEnd
    parts: dict[str, _Part]


class ScanCache:
    """The cache entries on this machine."""

    def __init__(self, storage: Storage, folder: str, *, reuse: bool) -> None:
        self.reuse = reuse
        self.problem = ""
        """Why entries could not be written; empty if they could."""
        self._storage = storage
        self._folder = folder

    def look(self, shard: Shard) -> Stamp | None:
        """The current state of the shard's file; None if it cannot identify the content later."""
        now = time.time_ns()
        stamp = _stamp(shard)
        return stamp if stamp is not None and now - stamp.mtime_ns >= RACY_NS else None

    def recall(
        self, shard: Shard, stamp: Stamp, keys: Mapping[str, str], *, digest: bool
    ) -> _EarlierScan | None:
        """The entry of an earlier scan; None if the shard has to be read."""
        entry = self._read(shard) if self.reuse else None
        if entry is None or entry.stamp != stamp or (digest and entry.end.blake3 is None):
            return None
        parts: dict[str, bytes] = {}
        for name, key in keys.items():
            part = entry.parts.get(name)
            if part is None or part.key != _digest(shard, name, key):
                return None
            parts[name] = part.data
        return _EarlierScan(entry.end, parts)

    def remember(
        self,
        shard: Shard,
        stamp: Stamp | None,
        end: StreamEnd,
        parts: Mapping[str, tuple[str, bytes]],
    ) -> None:
        """Store the results of a scan."""
        before = self._read(shard)
        if before is None and not self.reuse:
            return
        if stamp is None or _stamp(shard) != stamp:
            self.forget(shard)
            return
        kept = {name: _Part(_digest(shard, name, key), data) for name, (key, data) in parts.items()}
        if before is not None and before.stamp == stamp and _agree(before.end, end):
            kept = {**before.parts, **kept}
            end = before.end if end.blake3 is None else end
        self._write(shard, _Entry(FORMAT, stamp, end, kept))

    def keeps(self, shard: Shard) -> bool:
        """Whether the shard has an entry or will get one."""
        if self.reuse:
            return True
        try:
            return self._storage.stat(self._entry_path(shard)) is not None
        except StorageError:
            return True

    def forget(self, shard: Shard) -> None:
        """Delete the entry of a shard."""
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
            entry = read_note(text, _Entry)
        except (TfrecregError, ValueError):
            return None  # An invalid entry only means that the shard is read.
        return entry if entry.format == FORMAT else None

    def _write(self, shard: Shard, entry: _Entry) -> None:
        text = msgspec.json.encode(entry)
        try:
            with self._storage.create(self._entry_path(shard), durable=False) as writer:
                writer.write(blake3(text).hexdigest().encode("ascii") + b"\n" + text)
        except TfrecregError as error:
            self.problem = self.problem or error.message


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
    """Digest of everything that a part depends on besides the shard's bytes; parts contain the
    shard's name.
    """
    entry = msgspec.json.encode(shard.entry).hex() if shard.entry is not None else ""
    ours = f"{__version__} {code_of(OURS)}".rstrip()
    fields = (ours, validator, key, shard.split, shard.number, shard.name, shard.declared)
    text = "\0".join(f"{len(str(each))}:{each}" for each in (*fields, entry))
    return blake3(text.encode("utf-8", "surrogateescape")).hexdigest()


def _agree(one: StreamEnd, other: StreamEnd) -> bool:
    """Whether both scans have the same totals, as far as both computed them."""
    if one.blake3 is None or other.blake3 is None:
        one = replace(one, blake3=None, stream_blake3=None)
        other = replace(other, blake3=None, stream_blake3=None)
    return one == other


class Known(NamedTuple):
    """The results of an earlier scan of a shard."""

    end: StreamEnd
    parts: Sequence[Part]
    """In the order of the validators."""


def key_of(
    validator: Validator, target: Target, options: Mapping[str, Any], plugin_id: PluginId
) -> str | None:
    """The key of a validator's parts: what they depend on besides the shards. None if they cannot
    be cached.
    """
    if not isinstance(validator, Cacheable):  # a plugin's class need not inherit from Validator
        return None
    key = validator.part_key(target, options)
    if key is None:
        return None
    if not isinstance(key, str):
        raise TypeError(f"its `part_key` is {key!r}, expected a string or None")
    if validator.part_codec is None:
        return None
    kind = type(validator)
    code = code_of(plugin_id.distribution, kind.__module__)
    return f"{plugin_id.version}:{code}:{kind.__module__}.{kind.__qualname__}:{key}"


class Reuse:
    """The use of a cache by one scan."""

    def __init__(
        self,
        cache: ScanCache | None,
        validators: Sequence[tuple[PluginId, Validator, str | None]],
        *,
        digest: bool,
    ) -> None:
        self._cache = cache
        self._validators = validators
        self._digest = digest
        self._stamps: dict[int, Stamp | None] = {}

    def knows(self, number: int, shard: Shard) -> bool:
        """Whether the shard at position `number` of the target probably need not be read."""
        if self._cache is None:
            return False
        if not self._cache.keeps(shard):
            return False
        self._stamps[number] = self._cache.look(shard)
        return self._kept(number, shard) is not None

    def keeps(self, number: int) -> bool:
        """Whether the cache keeps the results of the shard at position `number`.

        The caller has called :meth:`knows`. An entry that another scan wrote since is as recent as
        ours.
        """
        return number in self._stamps

    def recall(self, number: int, shard: Shard) -> Known | None:
        """The cached results of that shard; None if it has to be read after all."""
        kept = self._kept(number, shard)
        if kept is None:
            return None
        try:
            parts: list[Part] = []
            for plugin_id, validator, _ in self._validators:
                with calling(plugin_id, "part_codec"):
                    if isinstance(validator, Cacheable):
                        parts.append(validator.part_codec.unpack(kept.parts[plugin_id.name]))
        except Exception:
            return None  # A part that cannot be unpacked is ignored: the shard is read instead.
        return Known(kept.end, parts)

    def _kept(self, number: int, shard: Shard) -> _EarlierScan | None:
        keys = {plugin_id.name: key for plugin_id, _, key in self._validators if key is not None}
        stamp = self._stamps[number]
        if self._cache is None or stamp is None or len(keys) < len(self._validators):
            return None
        return self._cache.recall(shard, stamp, keys, digest=self._digest)

    def remember(
        self, number: int, shard: Shard, end: StreamEnd | None, parts: Mapping[PluginId, Part]
    ) -> list[tuple[PluginId, str]]:
        """Store the results of a shard that was read."""
        cache = self._cache
        if cache is None:
            return []
        if end is None:
            cache.forget(shard)
            return []
        packed: dict[str, tuple[str, bytes]] = {}
        mistakes: list[tuple[PluginId, str]] = []
        for plugin_id, validator, key in self._validators:
            if key is None or plugin_id not in parts or not isinstance(validator, Cacheable):
                continue
            try:
                with calling(plugin_id, "part_codec"):
                    data = validator.part_codec.pack(parts[plugin_id])
                    if not isinstance(data, bytes | None):
                        raise TypeError(f"it packed {data!r}, expected bytes")
            except UnicodeEncodeError:
                continue  # A shard whose name is not UTF-8 is read each time.
            except Exception as error:
                mistakes.append((plugin_id, reason_of(traced(error))))
                continue
            if data is not None:
                packed[plugin_id.name] = key, data
        cache.remember(shard, self._stamps[number], end, packed)
        return mistakes

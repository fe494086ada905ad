"""What earlier scans found in shards that did not change since: `check --cached`.

An entry, one a shard, is a small JSON file with a digest of its own: what the shard looked like
(size, modification time, inode), what the scanner knew at its end, and each validator's part. It
is taken only where all of that is the same, and so is everything that a part depends on. Nothing
in it is ever executed: no pickle.

As with git's index, a file that was changed less than two seconds before it was looked at is not
remembered: its time would not tell the next change.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec
from blake3 import blake3

from tfrecreg._version import __version__
from tfrecreg.errors import StorageError, TfrecregError
from tfrecreg.guard import Brought, calling, reason_of
from tfrecreg.records import StreamEnd
from tfrecreg.scan.interface import Cacheable, Part, Shard, Target, Validator
from tfrecreg.storage import Storage

FORMAT = 1
"""Of the entries. One of another format is as good as none."""
RACY_NS = 2_000_000_000
"""A file has to be so old when it is looked at: some file systems keep times in steps of 2 s."""
_LIMIT = 1 << 26
"""An entry of more bytes is none."""


class Stamp(NamedTuple):
    """What a shard looks like from outside, and its index, for that helps after damage."""

    size: int
    mtime_ns: int
    inode: int
    beside: tuple[int, int, int] | None
    """The same of its index, if it has one."""


class Kept(NamedTuple):
    """What is known of a shard from an earlier scan."""

    end: StreamEnd
    parts: Mapping[str, bytes]
    """By validator, packed."""


class _Part(msgspec.Struct, frozen=True):
    key: str
    """Digest of all that it depends on besides the shard's bytes."""
    data: bytes


class _Entry(msgspec.Struct, frozen=True):
    format: int
    stamp: Stamp
    end: StreamEnd
    parts: dict[str, _Part]


class ScanCache:
    """The entries of this machine.

    Args:
        storage: where they are.
        folder: in `storage`.
        reuse: whether parts may be taken from them, and new ones be made. If not, entries of
            shards that are read are only brought up to date, so that they never contradict what
            was seen last.
    """

    def __init__(self, storage: Storage, folder: str, *, reuse: bool) -> None:
        self.reuse = reuse
        self.problem = ""
        """Why entries could not be written, if so."""
        self._storage = storage
        self._folder = folder

    def look(self, shard: Shard) -> Stamp | None:
        """What the shard looks like now; None where that says too little to go by it later."""
        now = time.time_ns()
        stamp = _stamp(shard)
        return stamp if stamp is not None and now - stamp.mtime_ns >= RACY_NS else None

    def recall(
        self, shard: Shard, stamp: Stamp, keys: Mapping[str, str], *, digest: bool
    ) -> Kept | None:
        """What an earlier scan knew; None where the shard has to be read.

        Args:
            shard: the one in question.
            stamp: what it looks like.
            keys: validators that want a part, and what these depend on.
            digest: whether anybody needs the digests.
        """
        entry = self._read(shard) if self.reuse else None
        if entry is None or entry.stamp != stamp or (digest and entry.end.blake3 is None):
            return None
        parts: dict[str, bytes] = {}
        for name, key in keys.items():
            part = entry.parts.get(name)
            if part is None or part.key != _digest(shard, name, key):
                return None
            parts[name] = part.data
        return Kept(entry.end, parts)

    def remember(
        self,
        shard: Shard,
        stamp: Stamp | None,
        end: StreamEnd,
        parts: Mapping[str, tuple[str, bytes]],
    ) -> None:
        """Keep what a scan found.

        Args:
            shard: that was read.
            stamp: what it looked like before.
            end: what the scanner knew at its end.
            parts: by validator: what it depends on, and the part, packed.
        """
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
        """Whether there is, or is to be, an entry for the shard."""
        if self.reuse:
            return True
        try:
            return self._storage.stat(self._path(shard)) is not None
        except StorageError:
            return True

    def forget(self, shard: Shard) -> None:
        """Drop what is known of a shard."""
        try:
            if self._storage.stat(self._path(shard)) is not None:
                self._storage.remove(self._path(shard))
        except StorageError as error:
            self.problem = self.problem or error.message

    def _path(self, shard: Shard) -> str:
        place = f"{shard.storage.root}\0{shard.path}".encode("utf-8", "surrogateescape")
        name = blake3(place).hexdigest()
        return f"{self._folder}/{name[:2]}/{name[2:]}.json"

    def _read(self, shard: Shard) -> _Entry | None:
        path = self._path(shard)
        try:
            if self._storage.stat(path) is None:
                return None
            digest, _, text = self._storage.read(path, limit=_LIMIT).partition(b"\n")
            if digest.decode("ascii", "replace") != blake3(text).hexdigest():
                return None
            entry = msgspec.json.decode(text, type=_Entry)
        except (TfrecregError, msgspec.MsgspecError):
            return None  # An entry that cannot be believed costs only the reading.
        return entry if entry.format == FORMAT else None

    def _write(self, shard: Shard, entry: _Entry) -> None:
        text = msgspec.json.encode(entry)
        try:
            with self._storage.create(self._path(shard), durable=False) as writer:
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
    """Of all that a part depends on besides the shard's bytes; parts name their shard."""
    entry = msgspec.json.encode(shard.entry).hex() if shard.entry is not None else ""
    fields = (__version__, validator, key, shard.split, shard.number, shard.name, shard.declared)
    text = "\0".join(f"{len(str(each))}:{each}" for each in (*fields, entry))
    return blake3(text.encode("utf-8", "surrogateescape")).hexdigest()


def _agree(one: StreamEnd, other: StreamEnd) -> bool:
    """Whether both scans saw the same, as far as both looked."""
    if one.blake3 is None or other.blake3 is None:
        one = replace(one, blake3=None, stream_blake3=None)
        other = replace(other, blake3=None, stream_blake3=None)
    return one == other


class Known(NamedTuple):
    """What an earlier scan found in a shard."""

    end: StreamEnd
    parts: Sequence[Part]
    """In the order of the validators."""


def key_of(
    validator: Validator, target: Target, options: Mapping[str, Any], brought: Brought
) -> str | None:
    """What the parts of a validator depend on besides the shards; None if they cannot be kept."""
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
    return f"{brought.version}:{kind.__module__}.{kind.__qualname__}:{key}"


class Reuse:
    """What a cache can do for one scan.

    Args:
        cache: None for nothing.
        validators: those of the scan, in order: who brought it, the validator, its key.
        digest: whether anybody needs the digests of shards.
    """

    def __init__(
        self,
        cache: ScanCache | None,
        validators: Sequence[tuple[Brought, Validator, str | None]],
        *,
        digest: bool,
    ) -> None:
        self._cache = cache
        self._validators = validators
        self._digest = digest
        self._stamps: dict[int, Stamp | None] = {}

    def knows(self, number: int, shard: Shard) -> bool:
        """Whether the shard at position `number` of the target need not be read, by all signs."""
        if self._cache is None:
            return False
        if not self._cache.keeps(shard):
            return False
        self._stamps[number] = self._cache.look(shard)
        return self._kept(number, shard) is not None

    def keeps(self, number: int) -> bool:
        """Whether the cache keeps what is found in the shard at position `number`.

        :meth:`knows` has been asked. An entry that another scan has made since is as new as ours.
        """
        return number in self._stamps

    def recall(self, number: int, shard: Shard) -> Known | None:
        """What is known of that shard; None where it has to be read after all."""
        kept = self._kept(number, shard)
        if kept is None:
            return None
        try:
            parts: list[Part] = []
            for brought, validator, _ in self._validators:
                with calling(brought, "part_codec"):
                    if isinstance(validator, Cacheable):
                        parts.append(validator.part_codec.unpack(kept.parts[brought.name]))
        except Exception:
            return None  # What cannot be unpacked is no part: the shard is read instead.
        return Known(kept.end, parts)

    def _kept(self, number: int, shard: Shard) -> Kept | None:
        keys = {brought.name: key for brought, _, key in self._validators if key is not None}
        stamp = self._stamps[number]
        if self._cache is None or stamp is None or len(keys) < len(self._validators):
            return None
        return self._cache.recall(shard, stamp, keys, digest=self._digest)

    def remember(
        self,
        number: int,
        shard: Shard,
        end: StreamEnd | None,
        parts: Mapping[Brought, Part],
    ) -> list[tuple[Brought, str]]:
        """Keep what was found in a shard that was read.

        Args:
            number: its position in the target.
            shard: the shard.
            end: None where it could not be read to its end.
            parts: of the validators that came to one, by who brought them.

        Returns:
            Validators whose parts cannot be packed, and why: mistakes of theirs.
        """
        cache = self._cache
        if cache is None:
            return []
        if end is None:
            cache.forget(shard)
            return []
        packed: dict[str, tuple[str, bytes]] = {}
        mistakes: list[tuple[Brought, str]] = []
        for brought, validator, key in self._validators:
            if key is None or brought not in parts or not isinstance(validator, Cacheable):
                continue
            try:
                with calling(brought, "part_codec"):
                    data = validator.part_codec.pack(parts[brought])
                    if not isinstance(data, bytes | None):
                        raise TypeError(f"it packed {data!r}, expected bytes")
            except UnicodeEncodeError:
                continue  # A name that is not UTF-8: its shard is read each time.
            except Exception as error:
                mistakes.append((brought, reason_of(error)))
                continue
            if data is not None:
                packed[brought.name] = key, data
        cache.remember(shard, self._stamps[number], end, packed)
        return mistakes

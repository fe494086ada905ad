"""Parts of earlier scans in a scan: which shards need not be read, and what to keep of the others.

What is here runs in the parent, around the engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tfrecreg.guard import Brought, calling, reason_of
from tfrecreg.records import StreamEnd
from tfrecreg.scan.cache import Kept, ScanCache, Stamp
from tfrecreg.scan.interface import Cacheable, Part, Shard, Target, Validator

__all__ = ["Known", "Reuse", "key_of"]


class Known(NamedTuple):
    """What an earlier scan found in a shard."""

    end: StreamEnd
    parts: Sequence[Part]
    """In the order of the validators."""


def key_of(validator: Validator, target: Target, options: Mapping[str, Any]) -> str | None:
    """What the parts of a validator depend on besides the shards; None if they cannot be kept."""
    if not isinstance(validator, Cacheable):
        return None
    key = validator.part_key(target, options)
    if key is None:
        return None
    if not isinstance(key, str):
        raise TypeError(f"its `part_key` is {key!r}, expected a string or None")
    kind = type(validator)
    return f"{kind.__module__}.{kind.__qualname__}:{key}"


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
        self._stamps[number] = self._cache.look(shard)
        return self._kept(number, shard) is not None

    def recall(self, number: int, shard: Shard) -> Known | None:
        """What is known of that shard; None where it has to be read after all."""
        kept = self._kept(number, shard)
        if kept is None:
            return None
        try:
            parts = []
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

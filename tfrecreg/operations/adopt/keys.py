"""What the records of adopted shards are called in their index: keys that are unique in a split.

Foreign shards have no keys. The value of a feature that tells the records apart is the best one,
for it stays with the record however the shards are cut; without one a record is called by the file
that it came in and its number there.
"""

from __future__ import annotations

from collections.abc import Iterable

from tfrecreg.errors import RefusedError
from tfrecreg.example import Example, Kind
from tfrecreg.index import load_index
from tfrecreg.storage import Storage
from tfrecreg.text import safe

__all__ = ["expect_unique", "feature_key", "file_key"]


def file_key(file: str, record: int) -> str:
    """``train-00000-of-00002#17``: the file's path below the common folder, and the number."""
    return f"{file}#{record}"


def feature_key(example: Example | None, feature: str) -> str | None:
    """The one value of `feature` as text; None where it has none, several, or a float."""
    found = example.get(feature) if example is not None else None
    if found is None or found.count != 1 or found.kind not in (Kind.BYTES, Kind.INT64):
        return None
    value = found.values[0]
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)


def expect_unique(storage: Storage, indexes: Iterable[tuple[str, str]], feature: str) -> None:
    """Refuse keys that two records of a split have. Holds the keys of one split at a time.

    Args:
        storage: where the indexes are.
        indexes: split and path of each, the splits one after the other.
        feature: that the keys came from.

    Raises:
        RefusedError: two records have one key.
    """
    current: str | None = None
    seen: set[str] = set()
    for split, path in indexes:
        if split != current:
            current = split
            seen.clear()
        index = load_index(storage, path)
        for key in map(index.key, range(len(index))):
            if key in seen:
                raise RefusedError(
                    f"two records of the split `{safe(split)}` have the key `{safe(key)}` in "
                    f"`{safe(feature)}`",
                    hint="name a feature that differs from record to record, or leave out `--key`",
                )
            seen.add(key)

"""The mark of a salvaged set: the report beside shards that were salvaged from damaged ones.

`tfrecreg salvage` writes ``salvage.json`` as the last file of its folder. Commands that read the
shards there (`check`, `adopt`) call :func:`read_mark` to detect that they were salvaged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from blake3 import blake3

from tfrecreg.core.storage.interface import Readable
from tfrecreg.core.values.documents import strict_json
from tfrecreg.core.values.errors import MissingFileError, StorageError

SALVAGE_NAME = "salvage.json"
"""The report's name, in the folder that a salvage wrote."""

SALVAGE_KIND = "tfrecreg-salvage"
"""The value of the report's `kind`, which distinguishes it from other files of that name."""

SALVAGE_FORMAT = 1
"""The report's `format_version`."""


@dataclass(frozen=True, slots=True)
class SalvageMark:
    """The report of a salvage on the shards in its folder."""

    digest: str
    """blake3 of the report's bytes, as hex; empty if they cannot be read."""
    changed: Mapping[str, str] = field(default_factory=dict)
    """The shards that are not whole originals: file name to blake3 of the clean file. May be empty
    if the only damage is missing shards.
    """
    lost: Mapping[str, str] = field(default_factory=dict)
    """The loss of each of them, in a few words."""
    broken: str = ""
    """Why the report cannot be parsed; empty if it can. If it cannot, every shard of the folder may
    be a salvaged one.
    """

    def covers(self, name: str, digest: str | None = None) -> bool:
        """Whether the shard `name` of the folder is a salvaged one."""
        return bool(self.broken) or name in self.changed or digest in self.changed.values()


def read_mark(storage: Readable, folder: str) -> SalvageMark | None:
    """The mark of the folder; None if it is not a salvaged set.

    A report that is damaged, unreadable or of a newer format still marks its folder: salvaged
    shards must not pass for sound ones. Another JSON file of the same name is not a mark.
    """
    path = f"{folder}/{SALVAGE_NAME}" if folder else SALVAGE_NAME
    try:
        data = storage.read(path)
    except MissingFileError:
        return None
    except StorageError as error:
        return SalvageMark("", broken=error.message)
    digest = blake3(data).hexdigest()
    try:
        found = strict_json(data)
    except ValueError as error:
        return SalvageMark(digest, broken=str(error))
    if not isinstance(found, dict) or found.get("kind") != SALVAGE_KIND:
        return None
    if found.get("format_version") != SALVAGE_FORMAT:
        return SalvageMark(digest, broken=f"its format is not {SALVAGE_FORMAT}")
    return _mark(digest, found)


def _mark(digest: str, found: Mapping[str, Any]) -> SalvageMark | None:
    changed: dict[str, str] = {}
    lost: dict[str, str] = {}
    try:
        for shard in found["shards"]:
            clean = shard["clean"]
            if clean is None or shard["status"] == "sound":
                continue
            changed[str(shard["name"])] = str(clean["blake3"])
            least = "" if shard["exact"] else "at least "
            records = int(shard["lost"])
            noun = "record" if records == 1 else "records"
            lost[str(shard["name"])] = f"{least}{records} {noun} lost"
        damaged = bool(found["damaged"])
    except (KeyError, TypeError, ValueError) as error:
        return SalvageMark(digest, broken=f"it is incomplete ({error!r})")
    return SalvageMark(digest, changed, lost) if changed or damaged else None

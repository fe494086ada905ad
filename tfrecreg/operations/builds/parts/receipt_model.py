"""A receipt as data: the claim of a part about a shard that it made, and its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from blake3 import blake3

from tfrecreg.documents import strict_json
from tfrecreg.manifest.model import ShardEntry, SourceEntry
from tfrecreg.operations.builds.parts.lines import json_line
from tfrecreg.operations.builds.parts.plan_model import Versions
from tfrecreg.operations.builds.shard import MadeShard
from tfrecreg.sources.interface import Remark, Skipped

RECEIPTS = "receipts"
"""Folder of the receipts, in the folder of the plan."""
RECEIPT_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeWhere:
    """When and where a shard was made. Not covered by the receipt's digest."""

    part: str
    """The part, ``17/64``; empty if the shard was made by the command that publishes."""
    created: str
    """UTC, ISO 8601 to the second."""
    by: str
    host: str
    python: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The claim of a part about a shard that it made."""

    format_version: int
    plan: str
    """Digest of the plan."""
    items: int
    """Number of items of the shard, in the plan."""
    shard: ShardEntry
    """Its `sha256` is empty."""
    features: dict[str, int]
    """Feature name to bytes of its values."""
    source: SourceEntry
    versions: Versions
    skipped: list[Skipped] = field(default_factory=list)
    """The items that have no record: with the records, all items of the shard."""
    remarks: list[Remark] = field(default_factory=list)
    objects: int = 0
    kept: bool = False
    """It is a shard of the base, as it was."""
    made: MadeWhere | None = None
    digest: str = ""
    """blake3 over everything but `digest` and `made`, as a line of JSON."""

    def made_shard(self) -> MadeShard:
        """The shard in the form of a build."""
        return MadeShard(
            entry=self.shard,
            index=None,
            features=self.features,
            skipped=self.skipped,
            remarks=self.remarks,
            objects=self.objects,
            kept=self.kept,
        )


def receipt_path(shard: str) -> str:
    """Path of a shard's receipt in the folder of the plan."""
    return f"{RECEIPTS}/{shard}.json"


def render_receipt(receipt: Receipt) -> bytes:
    """The file: one line of JSON in ASCII."""
    plain = msgspec.to_builtins(receipt)
    return json_line({**plain, "digest": _digest(plain)})


def parse_receipt(data: bytes) -> Receipt:
    """Read a receipt and check its digest.

    Raises:
        ValueError: it is not a receipt, or was changed; the message has the reason.
    """
    found = strict_json(data)
    if not isinstance(found, dict) or found.get("format_version") != RECEIPT_FORMAT:
        raise ValueError(f"its `format_version` is not {RECEIPT_FORMAT}")
    receipt = msgspec.convert(found, Receipt)
    if receipt.digest != _digest(found):
        raise ValueError("it was changed after it was written: its digest does not fit")
    return receipt


def _digest(plain: Mapping[str, Any]) -> str:
    covered = {name: plain[name] for name in plain if name not in ("digest", "made")}
    return blake3(json_line(covered)).hexdigest()

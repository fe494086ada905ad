"""Forged shards of parts with matching receipts."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tfrecreg.manifest.model import ShardEntry
from tfrecreg.operations.builds.parts.receipt_model import Receipt, parse_receipt, render_receipt
from tfrecreg.records.hashing import hash_both
from tfrecreg.records.writer import ShardWriter
from tfrecreg.storage.local import LocalStorage

__all__ = ["item_keys", "receipt_path", "reseal", "write_bytes", "write_shard"]


def receipt_path(plan: Path, shard: str) -> Path:
    return plan / "receipts" / f"{shard}.json"


def item_keys(plan: Path, shard: str) -> list[str]:
    """The keys of the items of a shard, in order."""
    text = gzip.decompress((plan / "items" / f"{shard}.jsonl.gz").read_bytes())
    return [json.loads(line)[0] for line in text.splitlines()]


def reseal(plan: Path, shard: str, change: Callable[[Any], None]) -> None:
    """Change the receipt of a shard, and give it the digest that fits."""
    path = receipt_path(plan, shard)
    plain = json.loads(path.read_bytes())
    change(plain)
    path.write_bytes(render_receipt(msgspec.convert(plain, Receipt)))
    parse_receipt(path.read_bytes())


def write_shard(
    plan: Path,
    shard: str,
    payloads: Sequence[bytes],
    *,
    compression: str = "none",
    change: Callable[[Any], None] = lambda plain: None,
) -> None:
    """Write a shard again, with a receipt that fits it.

    Args:
        plan: the folder of the plan.
        shard: its path.
        payloads: of its records.
        compression: of the shard.
        change: changes the receipt, too.
    """
    build = LocalStorage(plan / "build")
    with ShardWriter(build, shard, compression=compression, sha256=False) as writer:
        for payload in payloads:
            writer.write(payload, digest=None, key="")
    written = writer.written

    def fit(plain: Any) -> None:
        said = plain["shard"]
        entry = ShardEntry.of(shard, written, split=said["split"], index=said["index"])
        plain["shard"] = msgspec.to_builtins(entry)
        change(plain)

    reseal(plan, shard, fit)


def write_bytes(plan: Path, shard: str, data: bytes) -> None:
    """Write the file of a plain shard, with a receipt of its digests."""
    build = LocalStorage(plan / "build")
    Path(build.root, shard).write_bytes(data)
    found = hash_both(build, shard)
    fitting = {"bytes": found.bytes, "blake3": found.blake3, "stream_blake3": found.blake3}
    reseal(plan, shard, lambda plain: plain["shard"].update(fitting))

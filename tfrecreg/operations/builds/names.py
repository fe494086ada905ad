"""What the files of a build beside its shards are called."""

from __future__ import annotations

__all__ = ["INDEX_FOLDER", "LABELS_NAME", "LEDGER_NAME"]

INDEX_FOLDER = "index"
LABELS_NAME = "labels.json"
LEDGER_NAME = "ledger.jsonl"

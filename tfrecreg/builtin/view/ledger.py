"""The ledger of a build: what was remarked on its items."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any

from blake3 import blake3

from tfrecreg.errors import TfrecregError
from tfrecreg.manifest.model import LEDGER_NAME
from tfrecreg.scan.interface import Target

_LEDGER_BYTES = 64 << 20


class LedgerRows:
    """The remarks on items that are in the ledger of a build. Read when they are asked for."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def of(self, split: str, key: str | None) -> dict[str, Any] | None:
        """The row of an item; None without one."""
        return self._rows.get((split, key)) if key is not None else None

    @cached_property
    def _rows(self) -> dict[tuple[str, str], dict[str, Any]]:
        target = self._target
        files = target.manifest.files if target.manifest is not None else ()
        entry = next((each for each in files if each.path == LEDGER_NAME), None)
        if entry is None or target.storage is None:
            return {}
        try:
            data = target.storage.read(LEDGER_NAME, limit=_LEDGER_BYTES)
        except TfrecregError:
            return {}  # the check says so
        if blake3(data).hexdigest() != entry.blake3:
            return {}
        rows = map(json.loads, data.splitlines())
        return {(str(row.get("split")), str(row.get("key"))): row for row in rows}

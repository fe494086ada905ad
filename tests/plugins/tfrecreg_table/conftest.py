"""Raw folders with tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from raw_source_support import RawSource

from tfrecreg_table.source import TableSource


@pytest.fixture
def raw(tmp_path: Path) -> RawSource:
    return RawSource(tmp_path / "raw", TableSource)

"""Raw folders with files of any kind."""

from __future__ import annotations

from pathlib import Path

import pytest
from raw_source_support import RawSource

from tfrecreg_folder.source import FolderSource


@pytest.fixture
def raw(tmp_path: Path) -> RawSource:
    return RawSource(tmp_path / "raw", FolderSource)

"""A storage for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tfrecreg.core.storage.local import LocalStorage


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path / "root")

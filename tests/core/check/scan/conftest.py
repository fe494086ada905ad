from __future__ import annotations

import pytest
from engines_support import lighten


@pytest.fixture
def light_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    lighten(monkeypatch)

"""A build of drawn digits to damage."""

from __future__ import annotations

from pathlib import Path

import pytest
from check_support import Digits


@pytest.fixture
def digits(digits_registry: Path) -> Digits:
    """A registry with the dataset `digits`, for one test."""
    return Digits(digits_registry)

"""A registry whose first release is there, to be compared with builds that are put in after it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from diff_support import Splits, put_build, put_release

from tfrecreg.builtin.releases.diff.result import DiffResult, diff

Compare = Callable[..., DiffResult]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture
def compare(root: Path) -> Compare:
    """``compare(before, after)``: releases the one as 1.0.0, builds the other, and compares."""

    def call(before: Splits, after: Splits, **settings: Any) -> DiffResult:
        first = {
            name.removeprefix("first_"): settings.pop(name)
            for name in list(settings)
            if name.startswith("first_")
        }
        released = {
            name: settings.pop(name) for name in ("keep_bytes", "keep_indexes") if name in settings
        }
        put_build(root, before, **first)
        put_release(root, "1.0.0", **released)
        put_build(root, after, **settings)
        return diff("d@1.0.0", "d", registry=root)

    return call

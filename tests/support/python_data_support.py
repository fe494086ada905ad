"""Data of a program, and builds of them."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tfrecreg.builtin.python_data.build import build
from tfrecreg.core.build.conclude import BuildResult
from tfrecreg.core.build.request import BuildRequest
from tfrecreg.core.registry import layout
from tfrecreg.core.registry.init import init
from tfrecreg.core.registry.registry import Registry, open_registry
from tfrecreg.core.values.errors import TfrecregError

COUNT = 40


def element(number: int, version: str = "a") -> dict[str, Any]:
    return {
        "id": f"{version}-{number}",
        "pixels": np.full((3, 3), number, np.uint8),
        "label": number % 3,
        "score": np.arange(number % 3 + 1, dtype=np.float32),
    }


class Elements:
    """A sequence that is picklable, and can be made to count, to die or to change."""

    def __init__(self, count: int = COUNT, version: str = "a", dies_at: int = 0) -> None:
        self.count, self.version, self.dies_at = count, version, dies_at
        self.reads = 0

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> dict[str, Any]:
        self.reads += 1
        if self.reads == self.dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return element(number, self.version)


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    init(tmp_path / "registry", with_dvc=False)
    return open_registry(tmp_path / "registry")


def made(registry: Registry, data: Any, name: str = "shapes", **given: Any) -> BuildResult:
    settings = {key: given.pop(key) for key in ("policy", "base", "default_schema") if key in given}
    return build(registry, BuildRequest(name=name, **settings), data=data, **given)


def refused(registry: Registry, data: Any, **given: Any) -> TfrecregError:
    with pytest.raises(TfrecregError) as caught:
        made(registry, data, **given)
    return caught.value


def stage(registry: Registry, name: str = "shapes") -> Path:
    return Path(registry.storage.root, layout.stage_folder(name))

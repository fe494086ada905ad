"""A registry, and TFRecords of another tool outside of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from foreign_support import write_set

from tfrecreg.builtin.adopt.request import AdoptRequest
from tfrecreg.builtin.adopt.run import AdoptResult, adopt
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.run import check
from tfrecreg.core.records.index import read_index
from tfrecreg.core.registry.init import init
from tfrecreg.core.registry.manifest import Manifest
from tfrecreg.core.registry.registry import Registry, open_registry


@dataclass(frozen=True)
class Adopter:
    """A registry without DVC, and a folder beside it for what others wrote."""

    root: Path
    foreign: Path

    @property
    def registry(self) -> Registry:
        return open_registry(self.root)

    @property
    def stage(self) -> Path:
        return self.root / ".tfrecreg/stage"

    def data(self, name: str = "pets") -> Path:
        """The folder of a build."""
        return self.root / "data" / name

    def adopt(self, *paths: str | Path, name: str = "pets", **more: Any) -> AdoptResult:
        """Adopt, all that is in the foreign folder unless paths are named."""
        named = tuple(str(path) for path in paths)
        if not named and more.get("how") != "in-place":
            named = (str(self.foreign),)
        return adopt(self.registry, AdoptRequest(name=name, paths=named, **more))

    def manifest(self, name: str = "pets") -> Manifest:
        found = self.registry.dataset(name).build_manifest()
        assert found is not None
        return found

    def keys(self, path: str, name: str = "pets") -> list[str]:
        """The keys of a shard's records, in their order."""
        index = self.data(name) / f"index/{path}.index"
        return read_index(index.read_bytes(), path).keys()

    def check(self, target: str = "pets", **options: Any) -> dict[str, Any]:
        """The document of `check --json`."""
        (report,) = check([target], registry=str(self.root), options=CheckOptions(**options))
        found = json.loads(json.dumps(report.to_json()))
        assert isinstance(found, dict)
        return found

    def passes(self, target: str = "pets") -> bool:
        """Whether a check has nothing at all to say."""
        found = self.check(target)
        return bool(found["status"] == "pass" and not found["findings"])


@pytest.fixture
def adopter(tmp_path: Path) -> Adopter:
    """An empty registry, and two splits of another tool: 7 records in train, 4 in val."""
    root, foreign = tmp_path / "registry-root", tmp_path / "foreign"
    init(root, with_dvc=False)
    write_set(foreign, "train", 7, 3)
    write_set(foreign, "val", 4, 1, first=100)
    return Adopter(root, foreign)


@pytest.fixture
def snapshot() -> Callable[[Path], dict[str, tuple[int, int, bytes]]]:
    """Every file below a folder: inode, time and bytes."""

    def take(folder: Path) -> dict[str, tuple[int, int, bytes]]:
        return {
            path.relative_to(folder).as_posix(): (
                path.stat().st_ino,
                path.stat().st_mtime_ns,
                path.read_bytes(),
            )
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }

    return take

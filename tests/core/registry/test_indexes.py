"""Indexes of a build or release: where they are looked for, and how much of a file is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from blake3 import blake3
from registry_support import empty_registry, write

from tfrecreg.core.registry import indexes, layout
from tfrecreg.core.registry.manifest.model import FileEntry
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.values.errors import StorageError

DATA = b"0123456789"
ENTRY = FileEntry(path="index/a.index", bytes=len(DATA), blake3=blake3(DATA).hexdigest(), sha256="")
FOLDER = "data/mnist"
BESIDE = f"{FOLDER}/{ENTRY.path}"
KEPT = layout.cached_index(ENTRY.blake3)


def find_index(registry: Registry, folder: str | None = FOLDER) -> tuple[str, bytes] | None:
    return indexes.find_index(indexes.index_places(registry, folder, ENTRY), ENTRY)


@pytest.mark.parametrize("place", [KEPT, BESIDE])
def test_no_more_of_a_file_is_read_than_an_index_can_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    registry = empty_registry(tmp_path)
    write(tmp_path / place, DATA)
    monkeypatch.setattr(indexes, "INDEX_LIMIT", len(DATA))
    assert find_index(registry) == (place, DATA)
    monkeypatch.setattr(indexes, "INDEX_LIMIT", len(DATA) - 1)
    with pytest.raises(StorageError, match="10 bytes, more than the 9 that are read"):
        find_index(registry)


def test_another_place_is_looked_at_where_the_first_is_of_no_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = empty_registry(tmp_path)
    assert find_index(registry) is None
    write(tmp_path / BESIDE, DATA)
    for wrong in (b"", DATA[:-1], DATA + b"0"):
        write(tmp_path / KEPT, wrong)
        monkeypatch.setattr(indexes, "INDEX_LIMIT", len(DATA))
        assert find_index(registry) == (BESIDE, DATA)
    assert find_index(registry) == (BESIDE, DATA)
    write(tmp_path / KEPT, DATA)
    assert find_index(registry) == (KEPT, DATA)
    assert find_index(registry, None) == (KEPT, DATA)

"""From a reference to a manifest, a schema and the folder of the bytes."""

from __future__ import annotations

from pathlib import Path

import pytest
from blake3 import blake3
from registry_support import SCHEMA, empty_registry, manifest, put_build, put_release, write

from tfrecreg.core.registry.data import resolve
from tfrecreg.core.registry.indexes import find_index
from tfrecreg.core.registry.manifest import FileEntry, Manifest
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import (
    ManifestError,
    NewerFormatError,
    StorageError,
    UsageError,
)

NEWER = '{"format_version": 9}'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path.resolve() / "root"


@pytest.fixture
def registry(root: Path) -> Registry:
    return empty_registry(root)


@pytest.fixture
def released(root: Path, registry: Registry) -> Manifest:
    """1.0.0, 1.2.0, 1.10.0 and 2.0.0, the last of which is the build."""
    for number, version in enumerate(("1.0.0", "1.2.0", "1.10.0", "2.0.0")):
        build = put_build(root, "mnist", content=f"{number:02d}" * 32)
        put_release(root, build, version)
    return build


def test_a_name_is_the_build(root: Path, registry: Registry) -> None:
    build = put_build(root, "mnist")
    found = resolve(registry, "mnist")
    assert (found.kind, found.name) == ("build", "mnist")
    assert (found.manifest, found.folder) == (build, "data/mnist")
    assert (found.schema, found.schema_path) == (SCHEMA, "schemas/mnist.pbtxt")
    assert found.storage().root == str(root / "data/mnist")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("mnist@1.2.0", "mnist@1.2.0"),
        ("mnist@latest", "mnist@2.0.0"),
        ("mnist@1.*", "mnist@1.10.0"),
        ("mnist@1.2.*", "mnist@1.2.0"),
    ],
)
def test_references_to_releases(
    registry: Registry, released: Manifest, text: str, name: str
) -> None:
    found = resolve(registry, text)
    assert (found.kind, found.name) == ("release", name)
    assert found.manifest.release is not None
    assert f"mnist@{found.manifest.release.version}" == name
    assert found.schema_path == f"registry/mnist/{found.version}/schema.pbtxt"
    assert found.schema == SCHEMA


def test_the_bytes_of_a_release_are_the_build_while_it_still_is_it(
    root: Path, registry: Registry, released: Manifest
) -> None:
    put_build(root, "mnist", folder="versions/mnist/2.0.0", content="03" * 32)
    found = resolve(registry, "mnist@2.0.0")
    assert (found.folder, found.proven) == ("data/mnist", True)
    assert found.storage().root == str(root / "data/mnist")


def test_else_they_are_the_copy_that_was_brought_back(
    root: Path, registry: Registry, released: Manifest
) -> None:
    put_build(root, "mnist", folder="versions/mnist/1.0.0", content="00" * 32)
    found = resolve(registry, "mnist@1.0.0")
    assert (found.folder, found.proven) == ("versions/mnist/1.0.0", True)


def test_bytes_of_another_build_are_not_read(root: Path, registry: Registry) -> None:
    put_release(root, manifest("mnist"), "1.0.0", "12.dir")
    put_build(root, "mnist", content="ff" * 32)
    with pytest.raises(UsageError) as caught:
        resolve(registry, "mnist@1.0.0").storage()
    assert caught.value.hint == "tfrecreg pull mnist@1.0.0"


@pytest.mark.parametrize("text", ["{", NEWER])
@pytest.mark.parametrize("folder", ["data/mnist", "versions/mnist/2.0.0"])
def test_bytes_beside_a_damaged_manifest_may_be_looked_at_and_not_used(
    root: Path, registry: Registry, released: Manifest, folder: str, text: str
) -> None:
    write(root / "data/mnist/manifest.json", text)
    write(root / folder / "manifest.json", text)
    found = resolve(registry, "mnist@2.0.0")
    assert (found.folder, found.proven) == (folder, False)
    assert found.storage(to_check=True).root == str(root / folder)
    with pytest.raises(UsageError, match=f"it is uncertain whether `{folder}` has the bytes of"):
        found.storage()


def test_a_copy_of_another_build_is_looked_at_and_not_used(
    root: Path, registry: Registry, released: Manifest
) -> None:
    put_build(root, "mnist", folder="versions/mnist/1.0.0", content="99" * 32)
    found = resolve(registry, "mnist@1.0.0")
    assert (found.folder, found.proven) == ("versions/mnist/1.0.0", False)


def test_the_build_of_a_damaged_manifest_is_an_error(root: Path, registry: Registry) -> None:
    put_build(root, "mnist")
    write(root / "data/mnist/manifest.json", "{")
    with pytest.raises(ManifestError, match=r"`data/mnist/manifest\.json` is not a manifest"):
        resolve(registry, "mnist")
    write(root / "data/mnist/manifest.json", NEWER)
    with pytest.raises(NewerFormatError):
        resolve(registry, "mnist")


def test_a_schema_that_was_changed_in_a_release_is_found(
    root: Path, registry: Registry, released: Manifest
) -> None:
    write(root / "registry/mnist/2.0.0/schema.pbtxt", SCHEMA + "# harmless?\n")
    found = resolve(registry, "mnist@2.0.0")
    with pytest.raises(ManifestError, match="was changed after it was released"):
        _ = found.schema


def test_an_index_that_cannot_be_read_at_one_place_is_read_at_the_next(tmp_path: Path) -> None:
    (tmp_path / "bad").mkdir()
    (tmp_path / "good").write_bytes(b"index")
    storage = LocalStorage(tmp_path)
    digest = blake3(b"index").hexdigest()
    entry = FileEntry(path="x.index", bytes=5, blake3=digest, sha256="")
    assert find_index([(storage, "bad"), (storage, "good")], entry) == ("good", b"index")
    with pytest.raises(StorageError, match="bad"):
        find_index([(storage, "bad")], entry)

"""Finding and reading a registry."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from registry_support import SCHEMA, empty_registry, manifest, put_build, put_release, write

from tfrecreg.core.registry.manifest import MANIFEST_NAME, render_manifest
from tfrecreg.core.registry.registry import Registry, find_registry, open_registry
from tfrecreg.core.values.errors import (
    ConfigError,
    DatasetConfigError,
    ManifestError,
    MissingFileError,
    StorageError,
    UsageError,
)
from tfrecreg.core.values.reference import Version


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path.resolve() / "root"


@pytest.fixture
def registry(root: Path) -> Registry:
    return empty_registry(root)


def versions(registry: Registry, name: str = "mnist") -> list[str]:
    return [str(version) for version in registry.dataset(name).versions]


def test_a_registry_is_found_from_any_folder_in_it(
    root: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = root / "some/where/deep"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    assert find_registry() == root.resolve()
    assert open_registry().storage.root == str(root.resolve())
    assert open_registry(root / "some").storage.root == str(root.resolve())


@pytest.mark.parametrize("named", [False, True])
def test_without_a_registry_it_says_where_it_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=f"no registry here: neither `{tmp_path.resolve()}` nor"):
        open_registry(tmp_path if named else None)


def test_a_current_folder_that_is_gone_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(StorageError, match="a current folder that no longer exists"):
        open_registry()


def test_the_configuration_is_read_once_and_told_of_with_its_name(root: Path) -> None:
    registry = empty_registry(root, mnist='source = "mnist"\n')
    assert registry.dataset("mnist").config.source == "mnist"
    assert registry.dataset("other").config.source is None
    write(root / "datasets/mnist.toml", "source = 'other'\n")
    write(root / "tfrecreg.toml", "sauce = 1\n")
    assert registry.dataset("mnist").config.source == "mnist"
    with pytest.raises(ConfigError, match=r"tfrecreg\.toml.*sauce"):
        _ = open_registry(root).config


def test_every_dataset_has_a_file(root: Path) -> None:
    registry = empty_registry(root, "[gates.default]\nfail_on = 'warning'\n")
    write(root / "datasets/mnist.toml", 'source = "mnist"\n')
    write(root / "datasets/pets.toml", "")
    for other in (
        "README.md",
        ".mnist.toml.0123456789abcdef.tmp",
        "._mnist.toml",
        "folder.toml/a",
        "notes",
        ".toml",
    ):
        write(root / "datasets" / other, "= no TOML")
    assert registry.dataset_names() == ["mnist", "pets"]
    assert registry.dataset("mnist").config.source == "mnist"
    assert registry.dataset("mnist").config_file == "datasets/mnist.toml"
    assert registry.dataset("new").config_file == "datasets/new.toml"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('sorce = "mnist"', "`sorce` is not known; did you mean `source`?"),
        ("shards = 'two'", "`shards` should be a whole number >= 1, found `two`"),
        ("shards = ", "not TOML"),
    ],
)
def test_a_file_that_cannot_be_read_concerns_its_dataset_alone(
    root: Path, text: str, message: str
) -> None:
    empty_registry(root)
    write(root / "datasets/mnist.toml", 'source = "mnist"\n')
    write(root / "datasets/typo.toml", text)
    registry = open_registry(root)
    assert registry.dataset_names() == ["mnist", "typo"]
    assert registry.dataset("mnist").config.source == "mnist"
    assert registry.config.datasets.keys() == {"mnist"}
    with pytest.raises(DatasetConfigError) as caught:
        _ = registry.dataset("typo").config
    assert message in caught.value.message
    assert caught.value.message.startswith("`datasets/typo.toml`")
    assert caught.value.exit_code == 2


def test_datasets_are_those_that_are_configured_built_or_released(root: Path) -> None:
    registry = empty_registry(root, zoo='source = "mnist"\n')
    put_build(root, "built")
    put_release(root, manifest("released"), "1.0.0")
    elsewhere = (root / "registry/released").rename(root / "elsewhere")
    (root / "registry/released").symlink_to(elsewhere)
    for stranger in ("data/raw", "data/Upper", "registry/empty", "registry/not_one/notes"):
        (root / stranger).mkdir(parents=True)
    write(root / "data/built.dvc", "outs:")
    write(root / "registry/README.md", "hello")
    assert registry.dataset_names() == ["built", "released", "zoo"]
    assert registry.dataset("built").is_built()
    assert not registry.dataset("released").is_built()


def test_a_stranger_in_the_folder_of_releases_is_none(root: Path, registry: Registry) -> None:
    put_release(root, manifest("mnist"), "1.10.0")
    put_release(root, manifest("mnist"), "1.9.0")
    for name in ("v1.11.0", "1.12", "2.0.0-rc1", "01.0.0", "drafts", ".git", "3.0.0"):
        (root / "registry/mnist" / name).mkdir()
    write(root / "registry/mnist/4.0.0", "a file")
    write(root / "registry/mnist/5.0.0/.DS_Store", "left behind by a switch of branches")
    write(root / "registry/mnist/drafts/manifest.json", "{}")
    assert versions(registry) == ["1.9.0", "1.10.0"]
    assert versions(registry, "nobody") == []


def test_a_release_that_lost_its_manifest_is_damaged_and_not_gone(
    root: Path, registry: Registry
) -> None:
    put_release(root, manifest("mnist"), "1.0.0")
    put_release(root, manifest("mnist"), "1.1.0")
    (root / "registry/mnist/1.1.0/manifest.json").unlink()
    assert versions(registry) == ["1.0.0", "1.1.0"]
    with pytest.raises(MissingFileError, match=r"registry/mnist/1\.1\.0/manifest\.json"):
        registry.dataset("mnist").release_manifest(Version(1, 1, 0))


def test_damaged_manifests_are_named(root: Path, registry: Registry) -> None:
    dataset = registry.dataset("mnist")
    put_release(root, put_build(root, "mnist"), "1.0.0")
    for folder in ("data/mnist", "registry/mnist/1.0.0"):
        path = root / folder / MANIFEST_NAME
        path.write_bytes(path.read_bytes().replace(b'"stored":0', b'"stored":1'))
    with pytest.raises(ManifestError, match=r"^`data/mnist/manifest\.json` was changed") as caught:
        dataset.build_manifest()
    assert caught.value.exit_code == 2
    with pytest.raises(
        ManifestError, match=r"^`registry/mnist/1\.0\.0/manifest\.json` was changed"
    ):
        dataset.release_manifest(Version(1, 0, 0))


def test_a_release_under_another_number_is_refused(root: Path, registry: Registry) -> None:
    put_release(root, manifest("mnist"), "1.0.0")
    shutil.copytree(root / "registry/mnist/1.0.0", root / "registry/mnist/1.1.0")
    with pytest.raises(ManifestError) as caught:
        registry.dataset("mnist").release_manifest(Version(1, 1, 0))
    assert caught.value.message == (
        "`registry/mnist/1.1.0/manifest.json` should be the manifest of `mnist@1.1.0`, "
        "but is that of `mnist@1.0.0`"
    )
    shutil.copytree(root / "registry/mnist", root / "registry/copy")
    with pytest.raises(ManifestError, match=r"of `copy@1\.0\.0`, but is that of `mnist@1\.0\.0`"):
        registry.dataset("copy").release_manifest(Version(1, 0, 0))


def test_a_build_in_another_folder_is_refused(root: Path, registry: Registry) -> None:
    build = put_build(root, "mnist")
    put_build(root, "mnist", folder="data/copy")
    with pytest.raises(ManifestError, match="of `copy`, but is that of `mnist`"):
        registry.dataset("copy").build_manifest()
    released = put_release(root, build, "1.0.0")
    write(root / "data/mnist/manifest.json", render_manifest(released))
    with pytest.raises(ManifestError, match=r"of `mnist`, but is that of `mnist@1\.0\.0`"):
        registry.dataset("mnist").build_manifest()


def test_a_schema_is_the_same_where_git_converted_its_line_ends(root: Path) -> None:
    registry = empty_registry(root)
    write(root / "schemas/mnist.pbtxt", "feature {\r\n}\r\n")
    assert registry.dataset("mnist").schema_text() == "feature {\n}\n"


def test_a_schema_outside_the_registry_is_refused(root: Path) -> None:
    registry = empty_registry(root, mnist='schema = "../other.pbtxt"\n')
    with pytest.raises(UsageError, match=r"\.\./other\.pbtxt"):
        registry.dataset("mnist").schema_text()


def test_the_schema_of_a_release_is_the_one_that_was_released(
    root: Path, registry: Registry
) -> None:
    released = put_release(root, manifest("mnist"), "1.0.0")
    version = Version(1, 0, 0)
    assert registry.dataset("mnist").release_schema(version, released.schema.blake3) == SCHEMA
    write(root / "registry/mnist/1.0.0/schema.pbtxt", SCHEMA.replace("BYTES", "INT"))
    with pytest.raises(ManifestError) as caught:
        registry.dataset("mnist").release_schema(version, released.schema.blake3)
    assert caught.value.message.startswith(
        "`registry/mnist/1.0.0/schema.pbtxt` was changed after it was released: "
    )
    assert caught.value.hint == "restore it: git checkout -- registry/mnist/1.0.0/schema.pbtxt"

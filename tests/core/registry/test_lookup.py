"""From a reference to a manifest, a schema and the folder of the bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from registry_support import SCHEMA, empty_registry, manifest, put_build, put_release, write

from tfrecreg.core.registry.absence import expect_dataset
from tfrecreg.core.registry.lookup import resolve
from tfrecreg.core.registry.manifest.model import Manifest, SchemaEntry, ShardEntry
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.values.errors import ManifestError, NewerFormatError, NotHereError, UsageError

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


def refusal(registry: Registry, text: str) -> tuple[str, str]:
    with pytest.raises(UsageError) as caught:
        resolve(registry, text)
    assert caught.value.exit_code == 2
    return caught.value.message, caught.value.hint


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


def test_a_release_that_there_is_not_lists_those_there_are(
    registry: Registry, released: Manifest
) -> None:
    assert refusal(registry, "mnist@3.0.0") == (
        "no release `mnist@3.0.0`",
        "available: 1.0.0, 1.2.0, 1.10.0, 2.0.0",
    )
    assert refusal(registry, "mnist@7.*")[0] == "no release `mnist@7.*`"


def test_a_dataset_without_releases_says_how_to_make_one(root: Path, registry: Registry) -> None:
    put_build(root, "mnist")
    assert refusal(registry, "mnist@latest") == (
        "no release `mnist@latest`",
        "it has no release yet: tfrecreg release mnist --version 1.0.0",
    )


def test_a_dataset_that_is_not_built_says_what_there_is(root: Path) -> None:
    registry = empty_registry(root, mnist='source = "mnist"\n')
    assert refusal(registry, "mnist") == ("`mnist` is not built", "tfrecreg build mnist")
    put_release(root, manifest("mnist"), "1.0.0")
    assert refusal(registry, "mnist") == (
        "`mnist` is not built",
        "its newest release is `mnist@1.0.0`",
    )


@pytest.mark.parametrize("text", ["mnsit", "mnsit@1.0.0", "mnsit@latest"])
def test_an_unknown_dataset_suggests_what_was_meant(
    registry: Registry, released: Manifest, text: str
) -> None:
    assert refusal(registry, text) == (
        "no dataset `mnsit`; did you mean `mnist`?",
        "available: `mnist`",
    )


def test_in_an_empty_registry_it_says_how_to_begin(registry: Registry) -> None:
    message, hint = refusal(registry, "mnist")
    assert message == "no dataset `mnist`"
    assert hint == "the registry is empty: tfrecreg build mnist --source SOURCE --raw PATH"


def test_what_is_no_reference_is_refused(registry: Registry) -> None:
    assert "`MNIST` is not a dataset name" in refusal(registry, "MNIST")[0]
    assert "does not name a version" in refusal(registry, "mnist@one")[0]


def test_expecting_a_dataset_that_is_known_is_no_event(root: Path, registry: Registry) -> None:
    put_build(root, "mnist")
    expect_dataset(registry.dataset("mnist"))
    with pytest.raises(UsageError, match="no dataset `other`"):
        expect_dataset(registry.dataset("other"))


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


@pytest.mark.parametrize(
    ("built", "dvc", "what", "hint"),
    [
        (True, None, "has another build", "DVC does not have them: copy `versions/mnist/1.0.0` "),
        (True, "12.dir", "has another build", "tfrecreg pull mnist@1.0.0"),
        (False, "12.dir", "", "tfrecreg pull mnist@1.0.0"),
        (False, None, "", "DVC does not have them: copy `versions/mnist/1.0.0` "),
    ],
)
def test_else_a_clear_error_says_how_to_get_them(
    root: Path, registry: Registry, built: bool, dvc: str | None, what: str, hint: str
) -> None:
    put_release(root, manifest("mnist"), "1.0.0", dvc)
    if built:
        put_build(root, "mnist", content="ff" * 32)
    found = resolve(registry, "mnist@1.0.0")
    assert found.folder is None
    for to_check in (False, True):
        with pytest.raises(UsageError) as caught:
            found.storage(to_check=to_check)
        assert isinstance(caught.value, NotHereError)
        where = f"`data/mnist` {what}" if built else "there is no build in `data/mnist`"
        assert caught.value.message == (
            f"the bytes of `mnist@1.0.0` are not here: {where}, "
            "and there is no `versions/mnist/1.0.0`"
        )
        assert caught.value.hint.startswith(hint)


def a_shard(digest: str = "5a") -> ShardEntry:
    return ShardEntry(
        path="mnist-train.tfrecord-00000-of-00001",
        split="train",
        index="",
        bytes=16,
        records=1,
        payload_bytes=0,
        blake3=digest * 32,
        sha256="00" * 32,
        stream_blake3="00" * 32,
    )


@pytest.mark.parametrize("folder", ["data/mnist", "versions/mnist/1.0.0"])
def test_another_build_with_the_same_shards_does_for_reading_and_not_for_checking(
    root: Path, registry: Registry, folder: str
) -> None:
    """As after a release of which the schema alone changed."""
    put_release(root, manifest("mnist", shards=[a_shard()]), "1.0.0", "12.dir")
    other = SchemaEntry(blake3="11" * 32, bytes=1)
    put_build(root, "mnist", folder, shards=[a_shard()], schema=other)
    found = resolve(registry, "mnist@1.0.0")
    assert found.storage().root == str(root / folder)
    assert (found.folder, found.proven) == (None if folder == "data/mnist" else folder, False)


@pytest.mark.parametrize("changes", [{"shards": [a_shard("5b")]}, {"content": "ff" * 32}])
def test_a_build_with_other_shards_does_not_do_for_reading(
    root: Path, registry: Registry, changes: dict[str, Any]
) -> None:
    put_release(root, manifest("mnist", shards=[a_shard()]), "1.0.0", "12.dir")
    put_build(root, "mnist", **{"shards": [a_shard()], **changes})
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
    with pytest.raises(UsageError) as caught:
        found.storage()
    assert caught.value.message == (
        f"the bytes in `{folder}` may not be those of `mnist@2.0.0`: their manifest is damaged, "
        "or that of another build"
    )
    assert caught.value.hint == "`tfrecreg check mnist@2.0.0` looks at each of them"


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

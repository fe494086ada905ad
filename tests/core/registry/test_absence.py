"""Errors about missing builds and schemas, with hints that fit the state."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from git_support import commit, git, start
from registry_support import SCHEMA, empty_registry, manifest, put_build, put_release, write

from tfrecreg.core.registry.absence import (
    absent_schema,
    expect_same_schema,
    expects_schema,
    schema_hint,
    strays,
)
from tfrecreg.core.values.errors import UsageError

MNIST = 'source = "mnist"\nraw = "raw"\n'
OTHER = "# looser\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path.resolve() / "root"


def test_only_folders_with_shards_and_without_a_manifest_are_strays(root: Path) -> None:
    registry = empty_registry(root)
    put_build(root, "built")
    for path in ("built/a.tfrecord", "stray/a.tfrecord", "other/a.csv", "Not-a-name/a.tfrecord"):
        write(root / "data" / path, b"")
    assert strays(registry) == ["stray"]


def test_a_missing_schema_comes_back_as_git_or_a_release_has_it(root: Path) -> None:
    start(root)
    registry = empty_registry(root)
    build = put_build(root, "mnist")
    path = root / "schemas/mnist.pbtxt"
    path.unlink()
    draft = "`tfrecreg schema infer mnist --output schemas/mnist.pbtxt` drafts one"
    assert schema_hint(registry.dataset("mnist")) == draft
    put_release(root, build, "1.0.0")
    copy = "restore it: cp registry/mnist/1.0.0/schema.pbtxt schemas/mnist.pbtxt"
    assert schema_hint(registry.dataset("mnist")) == copy

    path.write_text(SCHEMA)
    commit(root)
    path.unlink()
    git(root, "rm", "--quiet", "--cached", "schemas/mnist.pbtxt")
    shown = absent_schema(registry.dataset("mnist"))
    assert shown.message == "`mnist` has no schema: there is no `schemas/mnist.pbtxt`"
    command = "git checkout HEAD -- schemas/mnist.pbtxt"
    assert shown.hint == f"restore it: {command}"
    git(root, *command.split()[1:])
    assert path.read_text() == SCHEMA


@pytest.mark.parametrize("made", ["build", "release"])
def test_a_dataset_keeps_the_schema_that_it_was_made_with(root: Path, made: str) -> None:
    registry = empty_registry(root, mnist=MNIST)
    expect_same_schema(registry.dataset("mnist"), OTHER)  # it was never built
    if made == "build":
        put_build(root, "mnist")
    else:
        put_release(root, manifest("mnist"), "1.0.0")
    (root / "schemas/mnist.pbtxt").unlink(missing_ok=True)
    expect_same_schema(registry.dataset("mnist"), SCHEMA)
    with pytest.raises(UsageError) as caught:
        expect_same_schema(registry.dataset("mnist"), OTHER)
    name = {"build": "mnist", "release": "mnist@1.0.0"}[made]
    assert f"the source's own schema differs from the schema of `{name}`" in caught.value.message
    accept = "use the source's own schema: tfrecreg build mnist --default-schema"
    restore = "restore it: cp registry/mnist/1.0.0/schema.pbtxt schemas/mnist.pbtxt; or "
    assert caught.value.hint == (accept if made == "build" else f"{restore}{accept}")


def test_a_schema_is_expected_of_datasets_that_are_worked_on(root: Path) -> None:
    assert not expects_schema(empty_registry(root, mnist=MNIST).dataset("mnist"))
    put_release(root, manifest("old"), "1.0.0")
    assert not expects_schema(empty_registry(root, mnist=MNIST).dataset("old"))
    put_build(root, "old")
    put_release(root, replace(manifest("mnist")), "1.0.0")
    registry = empty_registry(root, mnist=MNIST)
    assert expects_schema(registry.dataset("old"))
    assert expects_schema(registry.dataset("mnist"))
    named = empty_registry(root, new='source = "mnist"\nschema = "new.pbtxt"\n')
    assert expects_schema(named.dataset("new"))

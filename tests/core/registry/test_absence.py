"""What is not on this machine: the message, and a hint that fits the state."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from blake3 import blake3
from git_support import commit, git, start
from registry_support import SCHEMA, empty_registry, manifest, put_build, put_release, write

from tfrecreg.core.registry.absence import (
    absent_schema,
    expect_same_schema,
    expects_schema,
    schema_hint,
    strays,
)
from tfrecreg.core.registry.lookup import resolve
from tfrecreg.core.registry.manifest.model import SchemaEntry
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.values.errors import NotHereError, UsageError

MNIST = 'source = "mnist"\nraw = "raw"\n'
STAGES = """\
stages:
  build-mnist:
    cmd: tfrecreg build mnist
    deps:
    - raw
    outs:
    - data/mnist:
        persist: true
  check-mnist:
    cmd: tfrecreg check mnist
    deps:
    - data/mnist
    outs:
    - reports/mnist/check.json:
        cache: false
"""
LOCK = """\
schema: '2.0'
stages:
  build-mnist:
    cmd: tfrecreg build mnist
    outs:
    - path: data/mnist
      hash: md5
      md5: 0123.dir
"""
OTHER = "# looser\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path.resolve() / "root"


def missing_build(registry: Registry, name: str = "mnist") -> tuple[str, str]:
    with pytest.raises(NotHereError) as caught:
        resolve(registry, name)
    assert caught.value.exit_code == 2
    return caught.value.message, caught.value.hint


@pytest.mark.parametrize(
    ("files", "hint"),
    [
        ({"data/mnist.dvc": "outs:\n- path: mnist\n"}, "dvc pull data/mnist.dvc"),
        ({"dvc.yaml": STAGES, "dvc.lock": LOCK}, "dvc pull data/mnist"),
        ({"dvc.yaml": STAGES}, "dvc repro build-mnist"),
        # A stage that reads the folder does not make it.
        ({"dvc.yaml": STAGES.replace("data/mnist:\n", "data/more:\n")}, "tfrecreg build mnist"),
        ({"dvc.yaml": "\udcff"}, "tfrecreg build mnist"),
        ({}, "tfrecreg build mnist"),
    ],
    ids=["pointer", "stage", "stage never run", "reader", "no text", "raw data"],
)
def test_a_build_is_brought_as_it_is_kept(root: Path, files: dict[str, str], hint: str) -> None:
    registry = empty_registry(root, mnist=MNIST)
    for path, text in files.items():
        write(root / path, text.encode("utf-8", "surrogateescape"))
    assert missing_build(registry) == ("`mnist` is not built", hint)


@pytest.mark.parametrize(
    ("dvc", "hint"),
    [
        ("12.dir", "`tfrecreg pull mnist@1.0.0` fetches its newest release"),
        (None, "its newest release is `mnist@1.0.0`"),
    ],
)
def test_of_a_dataset_that_was_released_a_release_is_brought(
    root: Path, dvc: str | None, hint: str
) -> None:
    registry = empty_registry(root, mnist=MNIST)
    put_release(root, manifest("mnist"), "1.0.0", dvc)
    assert missing_build(registry) == ("`mnist` is not built", hint)
    write(root / "registry/mnist/1.0.0/manifest.json", "{")
    said = "`tfrecreg audit mnist` lists the faults of its releases"
    assert missing_build(registry)[1] == said


def test_without_a_source_the_hint_names_the_options_that_are_missing(root: Path) -> None:
    registry = empty_registry(root, mnist='owner = "ada"\n')
    assert missing_build(registry)[1] == "tfrecreg build mnist --source SOURCE --raw PATH"


@pytest.mark.parametrize("datasets", [{}, {"mnist": MNIST}])
def test_shards_without_a_manifest_are_not_a_build(root: Path, datasets: dict[str, str]) -> None:
    registry = empty_registry(root, **datasets)
    write(root / "data/mnist/mnist-train.tfrecord-00000-of-00001", b"")
    message = "`data/mnist` has shards and no `manifest.json`, so that nothing judges them"
    assert missing_build(registry) == (message, "tfrecreg adopt mnist --in-place")
    write(root / "data/mnist.dvc", "outs: []\n")
    hint = "dvc pull data/mnist.dvc; or tfrecreg adopt mnist --in-place"
    assert missing_build(registry) == (message, hint)


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
    shown = absent_schema(registry.dataset("mnist"))
    assert shown.message == "`mnist` has no schema: there is no `schemas/mnist.pbtxt`"
    assert shown.hint == "restore it: git checkout -- schemas/mnist.pbtxt"
    git(root, "rm", "--quiet", "--cached", "schemas/mnist.pbtxt")
    assert schema_hint(registry.dataset("mnist")) == (
        "restore it: git checkout HEAD -- schemas/mnist.pbtxt"
    )
    removed = commit(root)
    command = f"git checkout {removed[:12]}^ -- schemas/mnist.pbtxt"
    assert schema_hint(registry.dataset("mnist")) == f"restore it: {command}"
    git(root, *command.split()[1:])
    assert path.read_text() == SCHEMA


def test_a_release_with_another_schema_restores_none(root: Path) -> None:
    registry = empty_registry(root)
    put_release(root, put_build(root, "mnist"), "1.0.0")
    other = SchemaEntry(blake3=blake3(OTHER.encode()).hexdigest(), bytes=len(OTHER))
    put_build(root, "mnist", schema=other)
    (root / "schemas/mnist.pbtxt").unlink()
    assert schema_hint(registry.dataset("mnist")).endswith("drafts one")


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
    expected, found = (blake3(text.encode()).hexdigest()[:16] for text in (SCHEMA, OTHER))
    assert caught.value.message == (
        "`schemas/mnist.pbtxt` is missing, and the source's own schema is not that of "
        f"`{name}`: expected digest {expected}…, found {found}…"
    )
    accept = "take the source's own: tfrecreg build mnist --default-schema"
    restore = "restore it: cp registry/mnist/1.0.0/schema.pbtxt schemas/mnist.pbtxt; or "
    assert caught.value.hint == (accept if made == "build" else f"{restore}{accept}")


def test_of_two_releases_the_newest_says_which_schema_is_expected(root: Path) -> None:
    registry = empty_registry(root, mnist=MNIST)
    texts = {"1.0.0": OTHER, "1.1.0": SCHEMA, "2.0.0": "# the last\n"}
    for version, text in texts.items():
        entry = SchemaEntry(blake3=blake3(text.encode()).hexdigest(), bytes=len(text))
        put_release(root, manifest("mnist", schema=entry), version)
        (root / "schemas/mnist.pbtxt").unlink(missing_ok=True)
    dataset = registry.dataset("mnist")
    expect_same_schema(dataset, texts["2.0.0"])
    for text in (OTHER, SCHEMA):
        with pytest.raises(UsageError, match=r"is not that of `mnist@2\.0\.0`: expected"):
            expect_same_schema(dataset, text)


def test_a_schema_that_the_configuration_names_is_expected_before_the_first_build(
    root: Path,
) -> None:
    registry = empty_registry(root, mnist=f'{MNIST}schema = "schemas/msnit.pbtxt"\n')
    with pytest.raises(UsageError) as caught:
        expect_same_schema(registry.dataset("mnist"), SCHEMA)
    assert caught.value.message == (
        "`schemas/msnit.pbtxt`, which `datasets/mnist.toml` names as the schema of `mnist`, "
        "is missing"
    )
    assert caught.value.hint == "take the source's own: tfrecreg build mnist --default-schema"


def test_what_is_damaged_says_nothing_of_schemas(root: Path) -> None:
    registry = empty_registry(root, mnist=MNIST)
    put_build(root, "mnist")
    put_release(root, manifest("mnist"), "1.0.0")
    (root / "schemas/mnist.pbtxt").unlink()
    with pytest.raises(UsageError, match="is not that of `mnist`"):
        expect_same_schema(registry.dataset("mnist"), OTHER)
    write(root / "data/mnist/manifest.json", "{")
    write(root / "registry/mnist/1.0.0/manifest.json", "{")
    expect_same_schema(registry.dataset("mnist"), OTHER)


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

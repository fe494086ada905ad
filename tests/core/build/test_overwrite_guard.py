"""A build replaces builds, but no files that cannot be made again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests_support import tree

from tfrecreg.builtin.adopt.request import AdoptRequest
from tfrecreg.builtin.adopt.run import adopt
from tfrecreg.builtin.python_data.build import build
from tfrecreg.builtin.releases.release import ReleaseRequest, release
from tfrecreg.cli.digits import write_digits
from tfrecreg.core.build.request import BuildRequest
from tfrecreg.core.build.run import preview
from tfrecreg.core.records.writer import ShardWriter
from tfrecreg.core.registry.init import init
from tfrecreg.core.registry.registry import Registry, open_registry
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import UsageError


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    write_digits(LocalStorage(tmp_path / "raw"), train=5, test=5, seed=1)
    init(tmp_path / "registry", with_dvc=False)
    return open_registry(tmp_path / "registry")


def request(registry: Registry) -> BuildRequest:
    raw = str(Path(registry.storage.root).with_name("raw"))
    return BuildRequest(name="digits", source="mnist", raw=raw)


@pytest.mark.parametrize("work", [build, preview])
def test_files_that_are_no_build_are_not_replaced(registry: Registry, work) -> None:
    data = Path(registry.storage.root, "data/digits")
    data.mkdir(parents=True)
    (data / "thesis.txt").write_text("mine")
    before = tree(Path(registry.storage.root))
    with pytest.raises(UsageError) as caught:
        work(registry, request(registry))
    assert caught.value.message == (
        "`data/digits` holds files that do not belong to a build, and a new build would replace "
        "these files"
    )
    after = tree(Path(registry.storage.root))
    assert {name: after[name] for name in before} == before


def test_what_was_adopted_is_replaced_only_after_it_was_released(registry: Registry) -> None:
    root = Path(registry.storage.root)
    folder = root / "data/digits"
    with ShardWriter(LocalStorage(folder), "train.tfrecord") as writer:
        writer.write(b"", digest=bytes(16), key="a")
    adopt(registry, AdoptRequest(name="digits", paths=(), how="in-place"))
    before = tree(folder)
    with pytest.raises(UsageError, match="was adopted and never released, and its records, which"):
        build(registry, request(registry))
    assert tree(folder) == before
    release(registry, ReleaseRequest(name="digits"))
    (root / "schemas/digits.pbtxt").unlink()
    wanted = replace(request(registry), default_schema=True)
    assert build(registry, wanted).manifest.source.name == "mnist"


def test_a_build_whose_manifest_is_damaged_is_built_again(registry: Registry) -> None:
    build(registry, request(registry))
    manifest = Path(registry.storage.root, "data/digits/manifest.json")
    manifest.write_text("{")
    build(registry, request(registry))
    assert manifest.stat().st_size > 100

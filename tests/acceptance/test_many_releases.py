"""Many processes publish at once into one registry: no release is lost, and none is mixed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from git_support import commit, git, start
from publish_support import Said, all_at_once, images

from tfrecreg.builtin.dvc.dvc import cached_files
from tfrecreg.builtin.releases.audit import audit_releases
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.run import check
from tfrecreg.core.registry.init import init
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.values.config import FailOn
from tfrecreg.core.values.reference import parse_version


def started(folder: Path, *, with_dvc: bool = False) -> Path:
    """A registry in git."""
    root = start(folder / "registry-root")
    init(root, with_dvc=with_dvc)
    commit(root, "a registry")
    return root


def bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.tfrecord-*")))


def verify(root: Path, said: Sequence[Said], *, with_dvc: bool = False) -> list[Said]:
    """The publications that were acknowledged, after a look at each, and at all that is there."""
    made = [each for each in said if each.code == 0]
    registry = open_registry(root)
    numbers = {(each.dataset, each.text) for each in made}
    assert len(numbers) == len(made), "a number was given twice"
    there = {
        (name, str(v)) for name in registry.dataset_names() for v in registry.dataset(name).versions
    }
    assert there == numbers
    for each in made:
        manifest = registry.dataset(each.dataset).release_manifest(parse_version(each.text))
        assert (manifest.digest, manifest.content) == (each.digest, each.content)
        if with_dvc:
            assert manifest.release is not None
            places = cached_files(str(root), manifest.release.dvc or "")
            assert set(places) >= {shard.path for shard in manifest.shards}
            held = b"".join(Path(places[shard.path]).read_bytes() for shard in manifest.shards)
        else:
            held = bytes_of(root / f"versions/{each.dataset}/{each.text}")
        counts = Counter(image in held for image in images(each.turn))
        assert counts == {True: manifest.splits[0].records}, each
    report = audit_releases(registry)
    assert (report.status, report.releases) == ("pass", len(made))
    assert set(registry.config.datasets) == {each.dataset for each in said}
    assert not list((root / ".tfrecreg/stage").glob("*/*"))
    return made


def verify_bytes(root: Path, made: Sequence[Said]) -> None:
    """Each byte of each release, by `check`."""
    options = CheckOptions(only=("crc", "manifest", "schema"), fail_on=FailOn.WARNING)
    names = [f"{each.dataset}@{each.text}" for each in made]
    reports = check(names, registry=str(root), options=options)
    assert [report.status for report in reports] == ["pass"] * len(made)


def expect_clear(refused: Sequence[Said], name: str) -> None:
    """Who did not get a number was told that somebody else has it, and what to do."""
    for each in refused:
        assert each.code in (1, 2), each
        assert re.search(
            rf"`{name}@\d+\.0\.0` exists with other content|is below the first release"
            rf"|would come before|understates the change",
            each.text,
        ), each
        assert f"tfrecreg release {name} --bump auto" in each.hint or "smallest" in each.hint, each


@pytest.mark.slow
def test_processes_publish_datasets_of_their_own(tmp_path: Path) -> None:
    root = started(tmp_path)
    said = all_at_once(root, ["d0", "d1", "d2"], 3, "auto")
    made = verify(root, said)
    assert len(made) == 9
    verify_bytes(root, made)


@pytest.mark.slow
def test_builds_of_different_datasets_write_different_files(tmp_path: Path) -> None:
    root = started(tmp_path)
    before = (root / "tfrecreg.toml").read_bytes()
    said = all_at_once(root, ["one", "two", "three"], 1, "auto")
    assert [each.code for each in said] == [0, 0, 0]
    assert sorted(path.name for path in (root / "datasets").iterdir()) == [
        "one.toml",
        "three.toml",
        "two.toml",
    ]
    assert (root / "tfrecreg.toml").read_bytes() == before


@pytest.mark.slow
def test_processes_publish_one_dataset_and_each_gets_a_number(tmp_path: Path) -> None:
    root = started(tmp_path)
    made = verify(root, all_at_once(root, ["same"] * 3, 2, "auto"))
    assert {each.text for each in made} == {f"{number}.0.0" for number in range(1, 7)}
    verify_bytes(root, made)


@pytest.mark.slow
def test_processes_that_want_one_number_get_it_once(tmp_path: Path) -> None:
    root = started(tmp_path)
    said = all_at_once(root, ["same"] * 3, 2, "major", shared=True)
    made = verify(root, said)
    assert [each.text for each in sorted(made, key=lambda each: each.text)] == ["1.0.0", "2.0.0"]
    expect_clear([each for each in said if each.code], "same")


@pytest.mark.slow
def test_160_releases_by_8_processes_are_all_there(tmp_path: Path) -> None:
    root = started(tmp_path)
    made = verify(root, all_at_once(root, [f"d{number}" for number in range(8)], 20, "auto"))
    assert len(made) == 160
    verify_bytes(root, made)


@pytest.mark.slow
def test_160_releases_of_one_dataset_by_8_processes_are_all_there(tmp_path: Path) -> None:
    root = started(tmp_path)
    made = verify(root, all_at_once(root, ["same"] * 8, 20, "auto"))
    assert {each.text for each in made} == {f"{number}.0.0" for number in range(1, 161)}
    verify_bytes(root, made)


@pytest.mark.slow
def test_8_processes_that_want_the_same_numbers_get_each_once(tmp_path: Path) -> None:
    root = started(tmp_path)
    said = all_at_once(root, ["same"] * 8, 20, "major")
    made = verify(root, said)
    assert made
    expect_clear([each for each in said if each.code], "same")
    verify_bytes(root, made)


@pytest.mark.slow
@pytest.mark.parametrize("names", [[f"d{number}" for number in range(8)], ["same"] * 8])
def test_8_processes_publish_with_dvc(tmp_path: Path, names: list[str]) -> None:
    root = started(tmp_path, with_dvc=True)
    made = verify(root, all_at_once(root, names, 3, "auto"), with_dvc=True)
    assert len(made) == 24
    for name in set(names):
        assert (root / f"data/{name}.dvc").is_file()
        git(root, "check-ignore", "--quiet", f"data/{name}")
    commit(root, "all of them")
    assert not git(root, "ls-files", "data/*/*")

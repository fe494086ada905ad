"""Many processes publish into one registry at once. No release is lost, and no two are mixed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from git_support import commit, git, start
from publish_support import Said, all_at_once, image

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
    """The acknowledged publications, each compared with the release in the registry."""
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
        counts = Counter(image(number) in held for number in each.images)
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
    """Each refusal says that the number is taken, and what to do."""
    for each in refused:
        assert each.code in (1, 2), each
        assert re.search(
            rf"`{name}@\d+\.0\.0` exists with other content|is below the first release"
            rf"|would come before|understates the change",
            each.text,
        ), each
        assert f"tfrecreg release {name} --bump auto" in each.hint or "smallest" in each.hint, each


EIGHT = [f"d{number}" for number in range(8)]


@pytest.mark.slow
def test_8_processes_publish_datasets_of_their_own(tmp_path: Path) -> None:
    root = started(tmp_path)
    before = (root / "tfrecreg.toml").read_bytes()
    made = verify(root, all_at_once(root, EIGHT, 6))
    assert len(made) == 48
    verify_bytes(root, made)
    assert sorted(path.stem for path in (root / "datasets").iterdir()) == EIGHT
    assert (root / "tfrecreg.toml").read_bytes() == before


@pytest.mark.slow
def test_8_processes_publish_one_dataset_and_each_gets_a_number(tmp_path: Path) -> None:
    root = started(tmp_path)
    made = verify(root, all_at_once(root, ["same"] * 8, 6))
    assert {each.text for each in made} == {f"{number}.0.0" for number in range(1, 49)}
    verify_bytes(root, made)


@pytest.mark.slow
def test_8_processes_that_want_the_same_numbers_get_each_once(tmp_path: Path) -> None:
    root = started(tmp_path)
    said = all_at_once(root, ["same"] * 8, 4, same_numbers=True)
    made = verify(root, said)
    assert [each.text for each in sorted(made, key=lambda each: each.text)] == [
        f"{number}.0.0" for number in range(1, 5)
    ]
    expect_clear([each for each in said if each.code], "same")
    verify_bytes(root, made)


@pytest.mark.slow
@pytest.mark.parametrize("names", [EIGHT, ["same"] * 8])
def test_8_processes_publish_with_dvc(tmp_path: Path, names: list[str]) -> None:
    root = started(tmp_path, with_dvc=True)
    made = verify(root, all_at_once(root, names, 2), with_dvc=True)
    assert len(made) == 16
    for name in set(names):
        assert (root / f"data/{name}.dvc").is_file()
        git(root, "check-ignore", "--quiet", f"data/{name}")
    commit(root, "all of them")
    assert not git(root, "ls-files", "data/*/*")

"""Public names, and functions of targets: arguments as people write them."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

import tfrecreg as tr
from tfrecreg.cli.digits import write_digits
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import UsageError


@pytest.fixture
def reg(digits_registry: Path) -> tr.Registry:
    return tr.open(digits_registry)


def test_every_name_is_there_and_once() -> None:
    assert sorted(set(tr.__all__)) == tr.__all__
    assert len(tr.__all__) <= 39
    for name in tr.__all__:
        assert type(getattr(tr, name)).__name__ != "module", name
    for name in ("build", "BuildRequest", "open_registry", "open_engine"):
        with pytest.raises(AttributeError, match=f"no attribute '{name}'"):
            getattr(tr, name)


def test_one_target_gives_one_and_a_list_gives_a_list(reg: tr.Registry) -> None:
    shards = sorted(Path(reg.root, "data/digits").glob("*.tfrecord-*"))
    assert tr.check(shards[0]).shards == 1
    (all_of_them,) = tr.check(shards)
    assert all_of_them.shards == len(shards)
    assert [each.target for each in tr.check(["digits"], registry=reg)] == ["digits"]
    assert [each.target for each in reg.check()] == ["digits"]
    digests = tr.digest(["digits", "digits@1.0.0"], registry=reg)
    assert tr.digest("digits", registry=reg).splits == digests[1].splits
    with pytest.raises(UsageError, match="there is no target to check"):
        tr.check([])
    with pytest.raises(UsageError, match="there is no target to salvage"):
        tr.salvage([], Path(reg.root, "out"))


@pytest.mark.medium
def test_keywords_that_travel_are_those_of_the_signature(reg: tr.Registry) -> None:
    build = reg["digits"].built
    assert [*inspect.signature(tr.digest).parameters] == [
        *("targets", "split", "registry", "engine", "progress")
    ]
    assert [*inspect.signature(build.head).parameters][-2:] == ["where", "progress"]
    assert [*inspect.signature(tr.diff).parameters][:2] == ["before", "after"]
    assert tr.diff(before="digits", after="digits@1.0.0", registry=reg, progress=False).same
    for call in (
        lambda: build.digest(registry=reg),
        lambda: build.head(engine=None),  # type: ignore[call-arg]
        lambda: tr.head("digits", engine=None),  # type: ignore[call-arg]
        lambda: tr.digest("digits", registry=reg, nothing=1),  # type: ignore[call-overload]
        lambda: tr.stats(registry=reg),  # type: ignore[call-arg]
        lambda: reg["new"].build(nothing=1),  # type: ignore[call-arg]
    ):
        with pytest.raises(TypeError):
            call()
    assert len(reg.check(only="crc", skip="schema", progress=False)) == 1
    for refused in ({"same_as": "digits"}, {"source": "mnist"}):
        with pytest.raises(UsageError):
            reg.check(**refused)  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        build.check(ignore_missing=True)


@pytest.mark.parametrize("limit", [1, "1", "0.5%"])
def test_skipped_items_are_limited_by_a_number_or_a_share(
    reg: tr.Registry, tmp_path: Path, limit: int | str
) -> None:
    write_digits(LocalStorage(tmp_path / "raw"), train=5, test=2, seed=1)
    built = reg["more"].build(source="mnist", raw=tmp_path / "raw", max_skipped=limit)
    assert built.manifest.dataset == "more"
    assert len(repr(built.result)) < 1000
    assert len(repr(built)) < 300


def test_a_build_and_a_release_stand_for_their_references(reg: tr.Registry, tmp_path: Path) -> None:
    build, release = reg.find("digits"), reg.find("digits@1.0.0")
    assert isinstance(build, tr.Build)
    assert isinstance(release, tr.Release)
    assert release.dataset == build.dataset == reg["digits"]
    assert (str(build), str(release)) == ("digits", "digits@1.0.0")
    reports = tr.check([release, build, release])
    assert [each.target for each in reports] == ["digits@1.0.0", "digits"]
    assert tr.diff(release, build).same
    assert tr.head(release)[0].record == 0
    assert tr.salvage(release, tmp_path / "out").shards == ()
    assert tr.export(release, tmp_path / "index", to="index").files
    assert tr.export("digits", tmp_path / "again", to="index", registry=reg).files

"""The library as a program calls it: one style, and arguments as people write them."""

from __future__ import annotations

from pathlib import Path

import pytest

import tfrecreg
from tfrecreg.errors import RefusedError, UsageError
from tfrecreg.operations.demo.digits import write_digits
from tfrecreg.storage.local import LocalStorage


@pytest.fixture
def registry(tmp_path: Path, digits_registry: Path) -> tfrecreg.Registry:
    return tfrecreg.open_registry(digits_registry)


def test_every_name_is_there_and_once() -> None:
    assert sorted(set(tfrecreg.__all__)) == tfrecreg.__all__
    for name in tfrecreg.__all__:
        assert type(getattr(tfrecreg, name)).__name__ != "module", name


def test_a_registry_that_is_open_stands_for_its_folder(registry: tfrecreg.Registry) -> None:
    assert tfrecreg.open_registry(registry) is registry
    (report,) = tfrecreg.check("digits", registry=registry)
    assert report.status == "pass"
    assert tfrecreg.diff("digits", "digits@1.0.0", registry=registry).same
    assert next(tfrecreg.head("digits", registry=registry)).record == 0


def test_one_target_and_several_and_paths(registry: tfrecreg.Registry) -> None:
    root = Path(registry.storage.root)
    shards = sorted((root / "data/digits").glob("*.tfrecord-*"))
    (one,) = tfrecreg.check(shards[0], registry=registry)
    (all_of_them,) = tfrecreg.check(shards, registry=registry)
    assert one.shards == 1
    assert all_of_them.shards == len(shards)
    assert [each.target for each in tfrecreg.check(registry=registry)] == ["digits"]
    with pytest.raises(UsageError, match="nothing is named to salvage"):
        tfrecreg.salvage([], root / "out")


def test_what_fails_may_be_said_in_words(registry: tfrecreg.Registry) -> None:
    options = tfrecreg.CheckOptions(fail_on="warning")
    (report,) = tfrecreg.check("digits", registry=registry, options=options)
    assert report.fail_on is tfrecreg.FailOn.WARNING
    with pytest.raises(UsageError) as caught:
        tfrecreg.check("digits", registry=registry, options=tfrecreg.CheckOptions(fail_on="all"))
    assert caught.value.message == (
        "`fail_on` should be `error`, `warning` or `never`, found `all`"
    )


@pytest.mark.parametrize("limit", [1, "1", "0.5%", tfrecreg.SkipLimit.parse(1)])
def test_skipped_items_are_limited_by_a_number_or_a_share(
    registry: tfrecreg.Registry, tmp_path: Path, limit: int | str | tfrecreg.SkipLimit
) -> None:
    write_digits(LocalStorage(tmp_path / "raw"), train=5, test=2, seed=1)
    request = tfrecreg.BuildRequest(
        name="more", source="mnist", raw=str(tmp_path / "raw"), max_skipped=limit
    )
    built = tfrecreg.build(registry, request)
    assert built.manifest.dataset == "more"
    assert len(repr(built)) < 1000
    assert len(repr(tfrecreg.resolve(registry, "more"))) < 300


def test_a_limit_that_is_no_number_is_refused(registry: tfrecreg.Registry, tmp_path: Path) -> None:
    request = tfrecreg.BuildRequest(
        name="more", source="mnist", raw=str(tmp_path), max_skipped="some"
    )
    with pytest.raises((UsageError, RefusedError)) as caught:
        tfrecreg.build(registry, request)
    assert caught.value.message == (
        "`max_skipped`: expected a number of items such as `10`, or a share such as `0.5%`, "
        "found `some`"
    )


def test_a_build_and_a_release_stand_for_their_references(
    registry: tfrecreg.Registry, tmp_path: Path
) -> None:
    build = tfrecreg.resolve(registry, "digits")
    release = tfrecreg.resolve(registry, "digits@1.0.0")
    assert isinstance(build, tfrecreg.Build)
    assert isinstance(release, tfrecreg.Release)
    assert release.dataset == build.dataset == registry.dataset("digits")
    assert (str(build), str(release)) == ("digits", "digits@1.0.0")
    reports = tfrecreg.check([release, build, release])
    assert [each.target for each in reports] == ["digits@1.0.0", "digits"]
    assert tfrecreg.diff(release, build).same
    assert next(tfrecreg.head(release)).record == 0
    assert tfrecreg.salvage(release, tmp_path / "out").shards == ()


def test_a_handle_reads_anew(registry: tfrecreg.Registry) -> None:
    raw = str(registry.dataset("digits").raw_folder)
    dataset = registry.dataset("later")
    assert (dataset.versions, dataset.is_built()) == ([], False)
    tfrecreg.build(registry, tfrecreg.BuildRequest(name="later", source="mnist", raw=raw))
    assert dataset.is_built()
    tfrecreg.release(registry, tfrecreg.ReleaseRequest(name="later", version="1.0.0"))
    assert [str(each) for each in dataset.versions] == ["1.0.0"]


def test_a_release_stands_for_its_reference_in_a_data_source(registry: tfrecreg.Registry) -> None:
    release = tfrecreg.resolve(registry, "digits@1.0.0")
    source = tfrecreg.data_source(release, "train")
    assert len(source) == len(tfrecreg.data_source("digits@1.0.0", "train", registry=registry))

"""Handles and their verbs, as a program or a notebook uses them."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import numpy as np
import pytest

import tfrecreg as tr
from tfrecreg.cli.digits import write_digits
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import (
    FailureError,
    NotHereError,
    PluginError,
    RefusedError,
    UsageError,
)


@pytest.fixture
def reg(digits_registry: Path) -> tr.Registry:
    return tr.open(digits_registry)


def damage(reg: tr.Registry) -> str:
    """Flip a byte of the payload of the first record of a shard, and give its name."""
    shard = sorted(Path(reg.root, "data/digits").glob("*.tfrecord-*"))[0]
    data = bytearray(shard.read_bytes())
    data[20] ^= 1
    shard.write_bytes(data)
    return shard.name


def test_from_raw_data_to_two_releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_digits(LocalStorage(tmp_path / "raw/mnist"), train=40, test=10, seed=1)
    monkeypatch.chdir(tmp_path)
    images = np.arange(96, dtype=np.uint8).reshape(6, 4, 4, 1)
    labels = np.array([0, 1, 1, 0, 1, 0])

    reg = tr.init("registry", with_dvc=False)
    mnist = reg["mnist"]
    build = mnist.build(source="mnist", raw="raw/mnist", shards=4, jobs=2)
    assert (build.name, len(build.manifest.shards)) == ("mnist", 8)
    report = build.check(only=["crc", "schema"])
    assert report.validators == ("crc", "schema")
    report.raise_for_findings("warning")
    release = mnist.release(bump="auto", note="first")
    assert (release.name, mnist.latest.name) == ("mnist@1.0.0", "mnist@1.0.0")
    assert release.result is not None
    assert release.result.created
    assert [entry.note for entry in mnist.log()] == ["first"]

    shapes = reg["shapes"].build(
        data={"train": {"image": images, "label": labels}}, labels={"label": ["round", "square"]}
    )
    assert [split.records for split in shapes.manifest.splits] == [6]
    assert (list(reg), len(reg), "shapes" in reg) == (["mnist", "shapes"], 2, True)

    assert mnist.release("1.1.0").version.minor == 1
    v1, v2 = reg["mnist@1.0.0"], reg["mnist@latest"]
    assert v1.diff(v2).same
    assert v2.export("out", to="jsonl").files
    assert len(tr.data_source(v1, "train", decode=True)) == 40
    assert len(v2.data_source("train[:50%]")) == 20
    assert mnist["1.*"].describe()["version"] == "1.1.0"
    assert [each.status for each in reg.check()] == ["pass", "pass"]


def test_a_build_repeats_what_the_first_one_saved(reg: tr.Registry, tmp_path: Path) -> None:
    dataset = reg["more"]
    dataset.build(source="mnist", raw=Path(reg.root, "raw"), records_per_shard=50)
    assert [shard.split for shard in dataset.built.manifest.shards].count("train") == 4
    again = dataset.build()
    assert again.result is not None
    assert again.result.unchanged
    assert again == dataset.built
    with tr.engine(jobs=2) as engine:
        assert dataset.build(shard_size="8KiB", engine=engine).manifest.shards


def test_a_registry_is_found_from_below_and_stands_for_its_path(
    reg: tr.Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(reg.root, "data"))
    assert tr.open() == reg
    assert os.fspath(reg) == reg.root
    assert tr.open(reg) is reg
    assert tr.init(reg.root, with_dvc=False) == reg


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("digits@2.*", "no release `digits@2.*`"),
        ("digit@1.0.0", "no dataset `digit`; did you mean `digits`?"),
        (
            "No name",
            "`No name` is not a dataset name: expected a lower-case letter, then lower-case "
            "letters, digits and `_`",
        ),
    ],
)
def test_what_is_not_there_is_a_key_error_with_a_hint(
    reg: tr.Registry, name: str, message: str
) -> None:
    with pytest.raises(KeyError) as caught:
        reg[name]
    assert isinstance(caught.value, UsageError)
    assert caught.value.message == message
    assert bool(caught.value.hint) != ("is not a dataset name" in message)


def test_words_that_a_verb_does_not_know_are_refused(reg: tr.Registry) -> None:
    digits = reg["digits"]
    for call in (
        lambda: digits.build(compression="gz"),  # type: ignore[arg-type]
        lambda: digits.adopt(how="move"),  # type: ignore[arg-type]
        lambda: digits.release(bump="Minor"),  # type: ignore[arg-type]
    ):
        with pytest.raises(UsageError, match="should be one of `"):
            call()


def test_a_dataset_that_is_not_built_yet(reg: tr.Registry) -> None:
    later = reg["later"]
    assert (later.versions, later.schema, str(later)) == ([], None, "later")
    with pytest.raises(KeyError, match="no dataset `later`"):
        later.built  # noqa: B018
    with pytest.raises(KeyError, match="no dataset `later`"):
        later.latest  # noqa: B018
    Path(reg.root, "data/digits/manifest.json").unlink()
    with pytest.raises(NotHereError):
        reg["digits"].built  # noqa: B018


def test_a_report_with_findings_raises_them(reg: tr.Registry) -> None:
    shard = damage(reg)
    report = reg["digits"].built.check()
    with pytest.raises(RefusedError) as caught:
        report.raise_for_findings()
    assert caught.value.findings == report.failing
    assert pickle.loads(pickle.dumps(caught.value)).findings == report.failing
    assert repr(report) == "<Report digits: fail, CRC002, 259 records in 4 shards>"
    assert shard in report._repr_html_()
    assert caught.value.message == (
        "`digits`: The checksum of a record's data does not match (CRC002)"
    )
    with pytest.raises(UsageError, match="should be `error`, `warning` or `never`, found `all`"):
        report.raise_for_findings("all")
    report.raise_for_findings("never")


def test_a_warning_raises_where_it_is_asked_to(reg: tr.Registry) -> None:
    with Path(reg.root, "tfrecreg.toml").open("a") as file:
        file.write('[gates.digits]\nseverity = { SHD005 = "warning" }\n')
    Path(reg.root, "data/digits/stray.bin").write_bytes(b"?")
    report = tr.open(reg.root)["digits"].built.check(only="manifest")
    assert [(each.code, each.severity.value) for each in report.findings] == [("SHD005", "warning")]
    report.raise_for_findings()
    report.raise_for_findings("error")
    with pytest.raises(RefusedError):
        report.raise_for_findings("warning")


def test_an_incomplete_check_raises(reg: tr.Registry) -> None:
    Path(reg.root, "data/digits/manifest.json").write_text("{")
    (report,) = tr.check(["digits", "digits@1.0.0"], registry=reg)[:1]
    with pytest.raises(FailureError, match="the check of `digits` is incomplete: "):
        report.raise_for_findings()


def test_a_check_takes_handles_for_references(reg: tr.Registry) -> None:
    build, release = reg["digits"].built, reg["digits@1.0.0"]
    assert "content" in build.check(same_as=release).validators
    assert "content" in build.check(same_as="digits@1.0.0", expect={"train": 200}).validators
    with pytest.raises(PluginError, match="no validator named `cra`; did you mean `crc`"):
        build.check(only=["cra"])


def test_the_configuration_is_read_again_for_each_verb(reg: tr.Registry) -> None:
    digits = reg["digits"]
    file = Path(reg.root, digits.config_file)
    assert digits.config.source == "mnist"
    file.write_text(file.read_text().replace('"mnist"', '"minst"'))
    with pytest.raises(PluginError, match="no source named `minst`"):
        digits.build()

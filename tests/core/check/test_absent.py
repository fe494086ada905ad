"""What a registry names is there and judged, or the check does not pass."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from registry_support import write
from tests_support import Watcher, flip

from tfrecreg.builtin.python_data.build import build
from tfrecreg.builtin.releases.audit import audit_releases
from tfrecreg.cli.main import main
from tfrecreg.core.build.request import BuildRequest
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.reports import Report
from tfrecreg.core.check.run import check
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.values.config import FailOn
from tfrecreg.core.values.errors import NotHereError, UsageError

ABSENT = 'source = "mnist"\nraw = "raw"\n'
SCHEMA = "schemas/digits.pbtxt"
SHARD = "data/digits/digits-train.tfrecord-00000-of-00002"


def configure(root: Path, text: str) -> None:
    file = root / "tfrecreg.toml"
    file.write_text(file.read_text("utf-8") + text, "utf-8")


def shown(reports: list[Report]) -> list[tuple[str, str]]:
    return [(report.target, report.status) for report in reports]


# Datasets that are not here.


@pytest.mark.medium
def test_a_dataset_that_is_not_here_makes_the_check_incomplete(digits_registry: Path) -> None:
    write(digits_registry / "datasets/absent.toml", ABSENT)
    absent, digits = check([], registry=digits_registry)
    assert (absent.target, absent.status, absent.exit_code) == ("absent", "error", 3)
    assert absent.errors == ("`absent` is not built; hint: tfrecreg build absent",)
    assert digits.status == "pass"


def test_of_datasets_that_are_not_here_those_that_are_can_be_asked_for(
    digits_registry: Path,
) -> None:
    write(digits_registry / "datasets/absent.toml", ABSENT)
    options, notes = CheckOptions(ignore_missing=True), Watcher()
    reports = check([], registry=digits_registry, options=options, progress=notes)
    assert shown(reports) == [("digits", "pass")]
    assert notes.notes == ["not checked: `absent` is not built"]
    with pytest.raises(UsageError, match="`--ignore-missing` cannot be used with targets"):
        check(["digits"], registry=digits_registry, options=options)


def test_where_only_the_newest_release_is_here_it_is_judged(digits_registry: Path) -> None:
    copy = digits_registry / "versions/digits/1.0.0"
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(copy, ignore_errors=True)
    (digits_registry / "data/digits").rename(copy)
    assert shown(check([], registry=digits_registry)) == [("digits@1.0.0", "pass")]
    flip(copy / Path(SHARD).name, 30)
    assert shown(check([], registry=digits_registry)) == [("digits@1.0.0", "fail")]


@pytest.mark.parametrize(
    ("target", "code"), [("", 3), ("digits@latest", 3), ("digits@1.*", 3), ("digits@1.0.0", 0)]
)
def test_a_release_in_place_of_a_build_that_is_not_here_is_no_plain_pass(
    digits_registry: Path, capsys: pytest.CaptureFixture[str], target: str, code: int
) -> None:
    copy = digits_registry / "versions/digits/1.0.0"
    shutil.rmtree(copy, ignore_errors=True)
    copy.parent.mkdir(parents=True, exist_ok=True)
    (digits_registry / "data/digits").rename(copy)
    write(digits_registry / "data/digits.dvc", f"outs:\n- md5: {'0' * 32}.dir\n  path: digits\n")
    command = ["-C", str(digits_registry), "check", *filter(None, [target])]
    assert main(command) == code
    said = capsys.readouterr().out
    assert said.startswith("digits, a build that is not released: ")
    assert said.splitlines()[1].startswith("digits@1.0.0: ")
    assert main([*command, "--json"]) == code
    report = json.loads(capsys.readouterr().out)
    (report,) = report.get("reports", [report])
    assert report["status"] == ("error" if code else "pass")
    assert report["changes"][0].startswith("digits, a build that is not released: ")
    assert len(report["errors"]) == bool(code)


def test_shards_without_a_manifest_are_named(digits_registry: Path) -> None:
    (digits_registry / "data/digits/manifest.json").unlink()
    write(digits_registry / "data/stray/a.tfrecord", b"")
    digits, stray = check([], registry=digits_registry)
    for report in (digits, stray):
        assert report.status == "error"
        assert report.errors[0].startswith(
            f"`data/{report.target}` has shards but no `manifest.json` to check them against"
        )


def test_one_target_that_is_not_here_hides_no_other(digits_registry: Path) -> None:
    write(digits_registry / "datasets/absent.toml", ABSENT)
    reports = check(["digits", "absent"], registry=digits_registry)
    assert shown(reports) == [("digits", "pass"), ("absent", "error")]
    with pytest.raises(NotHereError, match="`absent` is not built"):
        check(["absent"], registry=digits_registry)


# Schemas that are not here.


@pytest.mark.parametrize("gate", ["", '\n[gates.digits]\nvalidators = ["crc", "schema"]\n'])
@pytest.mark.parametrize("fail_on", [None, FailOn.NEVER])
def test_a_build_whose_schema_is_gone_does_not_pass(
    digits_registry: Path, gate: str, fail_on: FailOn | None
) -> None:
    configure(digits_registry, gate)
    (digits_registry / SCHEMA).unlink()
    for named in ([], ["digits"]):
        (report,) = check(named, registry=digits_registry, options=CheckOptions(fail_on=fail_on))
        assert (report.status, report.exit_code) == ("error", 3)
        assert report.errors == (
            "`digits` has no schema: there is no `schemas/digits.pbtxt`; hint: restore it: "
            "cp registry/digits/1.0.0/schema.pbtxt schemas/digits.pbtxt",
        )


def test_a_schema_that_the_table_names_has_to_be_there(digits_registry: Path) -> None:
    file = digits_registry / "datasets/digits.toml"
    file.write_text('schema = "schemas/d.pbtxt"\n' + file.read_text("utf-8"), "utf-8")
    (report,) = check(["digits"], registry=digits_registry)
    assert report.status == "error"
    assert "there is no `schemas/d.pbtxt`" in report.errors[0]


# The check of releases.


def test_datasets_that_were_never_built_or_are_history_need_no_schema(
    digits_registry: Path,
) -> None:
    write(digits_registry / "datasets/absent.toml", ABSENT)
    assert audit_releases(open_registry(digits_registry)).status == "pass"
    (digits_registry / "datasets/digits.toml").unlink()
    shutil.rmtree(digits_registry / "data")
    (digits_registry / SCHEMA).unlink()
    assert audit_releases(open_registry(digits_registry)).status == "pass"


# What is built in place of a schema that is gone.


def test_a_build_puts_no_other_schema_in_the_place_of_one_that_is_gone(
    digits_registry: Path,
) -> None:
    path, registry = digits_registry / SCHEMA, open_registry(digits_registry)
    before = path.read_text("utf-8")
    stricter = before.replace("max: 255", "max: 9")
    assert stricter != before
    path.write_text(stricter, "utf-8")
    build(registry, BuildRequest(name="digits"))
    path.unlink()
    with pytest.raises(UsageError) as caught:
        build(registry, BuildRequest(name="digits"))
    assert caught.value.exit_code == 2
    assert caught.value.message.startswith(
        "`schemas/digits.pbtxt` is missing, and the source's own schema differs from the schema "
        "of `digits`: "
    )
    assert caught.value.hint == (
        "use the source's own schema: tfrecreg build digits --default-schema"
    )
    assert not path.exists()
    build(registry, BuildRequest(name="digits", default_schema=True))
    assert path.read_text("utf-8") == before
    path.unlink()
    build(registry, BuildRequest(name="digits"))
    assert path.read_text("utf-8") == before

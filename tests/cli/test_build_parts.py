"""`tfrecreg parts`: what is said, and what is refused with which exit code."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests_support import flip, tree

GIVEN = ("--source", "mnist", "--shards", "2")


@pytest.fixture
def plan(cli, raw, registry) -> Path:
    folder = registry.parent / "plan"
    done = cli("parts", "plan", "digits", folder, *GIVEN, "--raw", raw)
    assert done.code == 0, done.err
    return folder


def test_a_plan_says_what_comes_next(cli, raw, registry) -> None:
    folder = registry.parent / "plan"
    before = tree(registry, ignore=(".tfrecreg",))
    done = cli("parts", "plan", "digits", folder, *GIVEN, "--raw", raw)
    assert done.out.startswith(f"planned digits: 80 items in 4 shards, in {folder}\nplan    ")
    assert f"tfrecreg parts build {folder} --part I/N" in done.err
    assert tree(registry, ignore=(".tfrecreg",)) == before
    again = cli("parts", "plan", "digits", folder, *GIVEN, "--raw", raw)
    assert again.code == 2
    assert again.err == (
        f"error: `{folder}` is not empty\nhint: name a folder that does not exist yet, or an "
        "empty one: a plan never overwrites\n"
    )


def test_parts_and_publishing_tell_what_they_did(cli, plan, registry, monkeypatch) -> None:
    monkeypatch.chdir(registry.parent)  # parts need no registry
    one = cli("parts", "build", plan, "--part", "1/2")
    assert (one.code, one.err) == (0, "")
    assert one.out.startswith("part 1/2 of digits: made 2 shards; ")
    again = cli("parts", "build", plan, "--part", "1/2", "--json")
    assert (again.json["made"], again.json["finished_before"]) == (0, 2)
    none = cli("parts", "build", plan, "--part", "9/9")
    assert none.out == "part 9/9 of digits has no shards: nothing to do\n"
    monkeypatch.chdir(registry)
    missing = cli("parts", "publish", plan, "digits", "--parts-only")
    assert missing.code == 2
    assert "nothing was published: 2 of 4 shards are missing: `digits-t" in missing.err
    (registry.parent / "plan/parts/9-of-9").unlink()
    named = cli("parts", "publish", plan, "--parts-only")
    assert "2 of 4 shards are missing, of the part `2/2`: `digits-t" in named.err
    done = cli("parts", "publish", plan, "--release", "1.0.0", "--verify", "1")
    assert done.code == 0, done.err
    assert "2 shards of parts, 2 made here, 1 rebuilt and equal" in done.err
    assert "built digits, in data/digits" in done.out
    assert "released digits@1.0.0 (initial)" in done.out
    shown = cli("show", "digits@1.0.0", "--provenance")
    assert "receipts  4: 4 shards on " in shown.out
    assert "when published" in shown.out
    assert "part 1/2" in shown.out
    assert len(cli("show", "digits", "--provenance", "--json").json["parts"]["receipts"]) == 4
    out = cli("export", "digits@1.0.0", registry.parent / "out", "--to", "intoto")
    assert "sign `statement.intoto.json` and publish it with the shards" in out.out


def test_programs_get_what_was_planned_and_made(cli, raw, registry) -> None:
    folder = registry.parent / "plan"
    planned = cli("parts", "plan", "digits", folder, *GIVEN, "--raw", raw, "--json").json
    assert len(planned.pop("plan")) == 64
    assert planned == {
        "format_version": 1,
        "dataset": "digits",
        "folder": str(folder),
        "items": {"train": 60, "test": 20},
        "shards": 4,
    }
    made = cli("parts", "build", folder, "--part", "1/4", "--json").json
    assert len(made.pop("plan")) == 64
    assert made.pop("bytes") > 0
    assert made == {
        "format_version": 1,
        "dataset": "digits",
        "part": "1/4",
        "shards": ["digits-train.tfrecord-00000-of-00002"],
        "made": 1,
        "finished_before": 0,
        "records": 30,
    }


def test_publishing_tells_programs_what_was_made_where(cli, plan) -> None:
    cli("parts", "build", plan, "--part", "1/2")
    done = cli("parts", "publish", plan, "--json", "--verify", "100%")
    assert done.code == 0, done.err
    parts = done.json["parts"]
    assert (parts["from_parts"], len(parts["made_here"]), len(parts["verified"])) == (2, 2, 2)
    assert done.json["release"] is None


def test_missing_shards_and_raw_data_are_one_error(cli, plan, raw) -> None:
    shutil.rmtree(raw)
    done = cli("parts", "publish", plan)
    assert done.code == 2
    assert "4 of 4 shards are missing, and the raw data are not on this machine: " in done.err
    hint = f"hint: run the missing parts: `tfrecreg parts build {plan} --part I/N`\n"
    assert done.err.endswith(hint)
    part = cli("parts", "build", plan, "--part", "1/1")
    assert part.code == 2
    assert part.err == (
        f"error: the raw data `{raw}` are not on this machine\n"
        "hint: name the folder where they are: --raw PATH\n"
    )


def test_a_forged_shard_is_refused_by_name(cli, plan, registry) -> None:
    cli("parts", "build", plan, "--part", "1/1")
    name = "digits-train.tfrecord-00001-of-00002"
    flip(plan / "build" / name, 100)
    done = cli("parts", "publish", plan)
    assert done.code == 1
    assert f"error: nothing was published: `{name}`: its bytes are not those of" in done.err
    assert f"hint: find out how it was made; without `receipts/{name}.json` it is" in done.err
    assert not (registry / "data/digits").exists()


@pytest.mark.parametrize("part", ["0/2", "3/2", "1", "1/0", "-1/2", "a/b", "1/2/3", ""])
def test_a_part_is_a_number_of_a_number(cli, plan, part: str) -> None:
    done = cli("parts", "build", plan, f"--part={part}")
    assert done.code == 2
    assert f"error: `--part {part}` is not a part: expected I/N with I from 1 to N" in done.err
    assert "hint: the first of four parts is `--part 1/4`" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("plan", "digits"), "Missing argument 'DIR'"),
        (("build", "PLAN"), "Missing option '--part'"),
        (("build", "nowhere", "--part", "1/2"), "`nowhere` holds no plan: `plan.json` is missing"),
        (("publish", "nowhere"), "`nowhere` holds no plan: `plan.json` is missing"),
        (("publish", "PLAN", "--shards", "3"), "No such option"),
        (("publish", "PLAN", "more"), "is a plan of `digits`, not of `more`"),
        (("publish", "PLAN", "--raw", "nowhere"), "do not exist"),
        (("publish", "PLAN", "--verify", "all"), "expected a number of shards, or a share"),
        (("collect", "PLAN"), "No such command 'collect'"),
    ],
)
def test_what_does_not_fit_together_is_refused(cli, plan, arguments, message: str) -> None:
    done = cli("parts", *(plan if each == "PLAN" else each for each in arguments))
    assert done.code == 2
    assert message in done.err
    assert "hint: " in done.err


URL = "s3://user:secret@host/bucket"
WEB = "https://example.org/plan?X-Amz-Signature=secret"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("build", URL, "--part", "1/2"), "a URL of `s3://` holds a password or token"),
        (
            ("build", WEB, "--part", "1/2"),
            "a plan cannot be in `https://example.org/plan`",
        ),
        (("plan", "digits", WEB), "a plan cannot be in `https://example.org/plan`"),
        (("plan", "digits", URL), "a URL of `s3://` holds a password or token"),
        (("build", "PLAN", "--part", "1/2", "--raw", URL), "raw data are not read from `s3://"),
    ],
)
def test_urls_are_refused_without_their_secrets(cli, plan, raw, arguments, message: str) -> None:
    given = (*GIVEN, "--raw", raw) if arguments[0] == "plan" else ()
    done = cli("parts", *(plan if each == "PLAN" else each for each in arguments), *given)
    assert done.code == 2
    assert message in done.err
    assert "secret" not in done.err


def test_code_and_provenance_exclude_each_other(cli, registry) -> None:
    done = cli("show", "digits", "--code", "tf", "--provenance")
    assert done.code == 2
    assert "--code and --provenance exclude each other" in done.err

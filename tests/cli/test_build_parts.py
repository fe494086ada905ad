"""`tfrecreg build` with a plan: what is said, and what is refused with which exit code."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests_support import flip, tree

GIVEN = ("--source", "mnist", "--shards", "2")


@pytest.fixture
def plan(cli, raw, registry) -> Path:
    folder = registry.parent / "plan"
    done = cli("build", "digits", *GIVEN, "--raw", raw, "--plan-to", folder)
    assert done.code == 0, done.err
    return folder


def test_a_plan_says_what_comes_next(cli, raw, registry) -> None:
    folder = registry.parent / "plan"
    before = tree(registry, ignore=(".tfrecreg",))
    done = cli("build", "digits", *GIVEN, "--raw", raw, "--plan-to", folder)
    assert done.out.startswith(f"planned digits: 80 items in 4 shards, in {folder}\nplan    ")
    assert f"tfrecreg build --plan {folder} --part I/N" in done.err
    assert tree(registry, ignore=(".tfrecreg",)) == before
    again = cli("build", "digits", *GIVEN, "--raw", raw, "--plan-to", folder)
    assert again.code == 2
    assert again.err == (
        f"error: `{folder}` is not empty\nhint: name a folder that does not exist yet, or an "
        "empty one: a plan never overwrites\n"
    )


def test_parts_and_publishing_tell_what_they_did(cli, plan, registry, monkeypatch) -> None:
    monkeypatch.chdir(registry.parent)  # parts need no registry
    one = cli("build", "--plan", plan, "--part", "1/2")
    assert (one.code, one.err) == (0, "")
    assert one.out.startswith("part 1/2 of digits: made 2 shards; ")
    again = cli("build", "--plan", plan, "--part", "1/2", "--json")
    assert (again.json["made"], again.json["finished_before"]) == (0, 2)
    none = cli("build", "--plan", plan, "--part", "9/9")
    assert none.out == "part 9/9 of digits has no shards: nothing to do\n"
    monkeypatch.chdir(registry)
    missing = cli("build", "digits", "--plan", plan, "--parts-only")
    assert missing.code == 2
    assert "nothing was published: 2 of 4 shards are missing: `digits-t" in missing.err
    (registry.parent / "plan/parts/9-of-9").unlink()
    named = cli("build", "--plan", plan, "--parts-only")
    assert "2 of 4 shards are missing, of the part `2/2`: `digits-t" in named.err
    done = cli("build", "--plan", plan, "--release", "1.0.0", "--verify-parts", "1")
    assert done.code == 0, done.err
    assert "2 shards of parts, 2 made here, 1 made again and equal" in done.err
    assert "built digits, in data/digits" in done.out
    assert "released digits@1.0.0 (initial)" in done.out
    shown = cli("show", "digits@1.0.0", "--provenance")
    assert "receipts  4: 4 shards on " in shown.out
    assert "when published" in shown.out
    assert "part 1/2" in shown.out
    assert len(cli("show", "digits", "--provenance", "--json").json["parts"]["receipts"]) == 4
    out = cli("export", "digits@1.0.0", registry.parent / "out", "--to", "intoto")
    assert "sign `statement.intoto.json` and publish it with the shards" in out.out


def test_publishing_tells_programs_what_was_made_where(cli, plan) -> None:
    cli("build", "--plan", plan, "--part", "1/2")
    done = cli("build", "--plan", plan, "--json", "--verify-parts", "100%")
    assert done.code == 0, done.err
    parts = done.json["parts"]
    assert (parts["from_parts"], len(parts["made_here"]), len(parts["verified"])) == (2, 2, 2)
    assert done.json["release"] is None


def test_missing_shards_and_raw_data_are_one_error(cli, plan, raw) -> None:
    shutil.rmtree(raw)
    done = cli("build", "--plan", plan)
    assert done.code == 2
    assert "4 of 4 shards are missing, and the raw data are not on this machine: " in done.err
    hint = f"hint: run the missing parts: `tfrecreg build --plan {plan} --part I/N`\n"
    assert done.err.endswith(hint)
    part = cli("build", "--plan", plan, "--part", "1/1")
    assert part.code == 2
    assert part.err == (
        f"error: the raw data `{raw}` are not on this machine\n"
        "hint: name the folder where they are: --raw PATH\n"
    )


def test_a_forged_shard_is_refused_by_name(cli, plan, registry) -> None:
    cli("build", "--plan", plan, "--part", "1/1")
    name = "digits-train.tfrecord-00001-of-00002"
    flip(plan / "build" / name, 100)
    done = cli("build", "--plan", plan)
    assert done.code == 1
    assert f"error: nothing was published: `{name}`: its bytes are not those of" in done.err
    assert f"hint: find out how it was made; without `receipts/{name}.json` it is" in done.err
    assert not (registry / "data/digits").exists()


@pytest.mark.parametrize("part", ["0/2", "3/2", "1", "1/0", "-1/2", "a/b", "1/2/3", ""])
def test_a_part_is_a_number_of_a_number(cli, plan, part: str) -> None:
    done = cli("build", "--plan", plan, f"--part={part}")
    assert done.code == 2
    assert f"error: `--part {part}` is not a part: expected I/N with I from 1 to N" in done.err
    assert "hint: the first of four parts is `--part 1/4`" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--part", "1/2"), "`--part` needs `--plan DIR`, the folder of a plan"),
        (("digits", "--verify-parts", "1"), "`--verify-parts` needs `--plan DIR`, the folder"),
        (("digits", "--parts-only"), "`--parts-only` needs `--plan DIR`, the folder of a plan"),
        ((), "Missing argument 'NAME'"),
        (("--plan", "nowhere"), "`nowhere` holds no plan: `plan.json` is missing"),
        (("--plan", "PLAN", "--shards", "3"), "`--shards` cannot be combined with `--plan`"),
        (("--plan", "PLAN", "--plan-to", "x"), "`--plan-to` cannot be combined with `--plan`"),
        (("--plan", "PLAN", "--repair", "x"), "`--repair` cannot be combined with `--plan`"),
        (
            ("--plan", "PLAN", "--part", "1/2", "--release", "auto"),
            "`--release` cannot be combined with `--part`: the plan has the settings",
        ),
        (("more", "--plan", "PLAN"), "is a plan of `digits`, not of `more`"),
        (("more", "--plan", "PLAN", "--part", "1/2"), "is a plan of `digits`, not of `more`"),
        (("--plan", "PLAN", "--raw", "nowhere"), "do not exist"),
        (("--plan", "PLAN", "--verify-parts", "all"), "expected a number of shards, or a share"),
        (
            ("digits", "--plan-to", "x", "--dry-run"),
            "`--dry-run` cannot be combined with `--plan-to`, which builds nothing",
        ),
        (
            ("digits", "--plan-to", "x", "--release", "auto"),
            "`--release` cannot be combined with `--plan-to`, which builds nothing",
        ),
    ],
)
def test_what_does_not_fit_together_is_refused(cli, plan, arguments, message: str) -> None:
    done = cli("build", *(plan if each == "PLAN" else each for each in arguments))
    assert done.code == 2
    assert message in done.err
    assert "hint: " in done.err


URL = "s3://user:secret@host/bucket"
WEB = "https://example.org/plan?X-Amz-Signature=secret"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--plan", URL, "--part", "1/2"), "a URL of `s3://` holds a password or token"),
        (
            ("--plan", WEB, "--part", "1/2"),
            "a plan is not kept in `https://example.org/plan`",
        ),
        (("digits", "--plan-to", WEB), "a plan is not kept in `https://example.org/plan`"),
        (("digits", "--plan-to", URL), "a URL of `s3://` holds a password or token"),
        (("--plan", "PLAN", "--part", "1/2", "--raw", URL), "raw data are not read from `s3://"),
    ],
)
def test_urls_are_refused_without_their_secrets(cli, plan, raw, arguments, message: str) -> None:
    given = (*GIVEN, "--raw", raw) if "--plan-to" in arguments else ()
    done = cli("build", *(plan if each == "PLAN" else each for each in arguments), *given)
    assert done.code == 2
    assert message in done.err
    assert "secret" not in done.err


def test_code_and_provenance_exclude_each_other(cli, registry) -> None:
    done = cli("show", "digits", "--code", "tf", "--provenance")
    assert done.code == 2
    assert "--code and --provenance exclude each other" in done.err

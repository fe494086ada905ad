"""`tag` and `yank`, and what `log`, `show`, `list` and `check` say of releases."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from git_support import commit, git, start
from tests_support import tree


def test_a_withdrawal_is_told_by_everything(cli, here: Path) -> None:
    done = cli("yank", "digits@1.0.0", "--reason", "labels \x1b[31mare wrong")
    assert (done.code, done.err) == (0, "")
    assert done.out == "yanked digits@1.0.0: labels \\x1b[31mare wrong\n"
    again = cli("yank", "digits@1.0.0", "--reason", "labels \x1b[31mare wrong")
    assert again.out.startswith("already yanked: digits@1.0.0: ")
    shown = cli("show", "digits@1.0.0")
    assert shown.code == 0
    assert "  yanked    labels \\x1b[31mare wrong (2" in shown.out
    assert "  yanked: labels \\x1b[31mare wrong (2" in cli("log", "digits").out
    (listed,) = cli("list", "--json").json["datasets"]
    assert (listed["latest"], listed["releases"], listed["records"]) == ("", 1, 260)
    refused = cli("show", "digits@latest")
    assert refused.code == 2
    assert "error: every release `digits@latest` was yanked (1.0.0 because: " in refused.err
    checked = cli("check", "digits@1.0.0")
    assert checked.code == 0
    assert "warning REG007 withdrawn-release: yanked on 2" in checked.out
    assert cli("check", "digits@1.0.0", "--fail-on", "warning").code == 1
    for done in (shown, refused, checked):
        assert "\x1b" not in done.out + done.err


def test_a_withdrawal_as_json(cli, here: Path) -> None:
    found = cli("yank", "digits@1.0.0", "--reason", "wrong", "--json").json
    assert found["format_version"] == 1
    assert (found["reference"], found["yanked_now"]) == ("digits@1.0.0", True)
    assert found["yank"]["reason"] == "wrong"
    assert (found["made"], found["there"], found["commit"]) == ([], [], "")
    (yank,) = cli("show", "digits@1.0.0", "--json").json["yanks"]
    assert yank == found["yank"]
    assert cli("log", "digits", "--json").json["releases"][0]["yanks"] == [yank]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ("tag", "digits"),
            2,
            "error: `digits` is a build, which may change: only releases can be tagged",
        ),
        (("tag", "digits@1.0.0"), 2, "error: the registry is not in a git work tree"),
        (("tag", "digits@2.0.0"), 2, "error: no release `digits@2.0.0`"),
        (("yank", "digits@1.0.0"), 2, "error: Missing option '--reason'"),
    ],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(
    cli, here: Path, arguments, code, message
) -> None:
    before = tree(here, ignore=(".tfrecreg",))
    done = cli(*arguments)
    assert done.code == code
    assert message in done.err
    assert tree(here, ignore=(".tfrecreg",)) == before


def test_the_log_says_what_changed_in_numbers(cli, here: Path) -> None:
    for name in ("labels-idx1", "images-idx3"):
        path = here / f"raw/train-{name}-ubyte.gz"
        os.utime(path, (1, 1))
    assert cli("build", "digits", "--shards", "3", "--base", "none").code == 0
    assert cli("release", "digits").code == 0
    log = cli("log", "digits").out
    assert "digits@1.0.1" in log
    assert "  examples: the same; shards: 0 unchanged, 6 new\n" in log
    newest, first = cli("log", "digits", "--json").json["releases"]
    assert newest["counts"]["added"] == 0
    assert newest["counts"]["shards_new"] == 6
    assert first["counts"] is None
    assert cli("check", "digits@1.0.1").code == 0


@pytest.mark.medium
def test_a_stage_is_a_reference_to_the_release_in_it(cli, here: Path) -> None:
    outside = cli("show", "digits#prod")
    assert outside.code == 2
    assert (
        "`digits#prod` names a stage, and stages are git tags, but the registry is not in a"
        in outside.err
    )
    start(here)
    commit(here, "Release digits@1.0.0")
    empty = cli("check", "digits#prod")
    assert empty.code == 2
    assert "error: no release of `digits` is in the stage `prod`" in empty.err
    assert "hint: `tfrecreg tag digits@latest --stage prod` assigns one" in empty.err
    git(here, "tag", "-a", "digits#prod#1", "-m", "assign")
    unnamed = cli("check", "digits#prod")  # no tag says which release the commit holds
    assert (unnamed.code, unnamed.err) == (empty.code, empty.err)
    git(here, "tag", "-a", "digits@v1.0.0", "-m", "register")
    for reference in ("digits#prod", "digits#prod#1", "digits@v1.0.0"):
        assert cli("show", reference, "--json").json["reference"] == "digits@1.0.0"
        assert cli("check", reference, "--json").json["target"] == "digits@1.0.0"
        assert cli("schema", "show", reference).code == 0
    assert cli("schema", "check", "digits#prod", "--json").json["against"] == []
    assert cli("build", "digits", "--base", "digits#prod").code == 0
    yanked = cli("yank", "digits@1.0.0", "--reason", "wrong")
    assert "tagged digits@v1.0.0! at commit " in yanked.out
    assert yanked.err.endswith("  git push origin 'digits@v1.0.0!'\n")

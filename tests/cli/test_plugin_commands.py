"""A distribution brings a command: in the help, in completion, with the session of the call."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from plugin_support import install, with_site
from sources_support import new_registry, tfrecreg

PLUGIN = """
from tfrecreg.api import CommandRecord, Session, UsageError, hookimpl, session_command

def load():
    import click

    @session_command("names")
    @click.option("--fail", default="")
    def command(session: Session, fail: str) -> int:
        \"""Name the datasets.\"""
        if fail == "usage":
            raise UsageError("no names today", hint="come back tomorrow")
        if fail:
            raise ValueError(f"fail is {fail}")
        names = session.open().dataset_names()
        if session.as_json:
            session.print_json({"names": names})
        else:
            session.out.print(f"{len(names)} names")
        return 1 if names else 0

    return command

@hookimpl
def tfrecreg_commands():
    yield CommandRecord(name="names", summary="Name the datasets", load=load)
    yield CommandRecord(name="other", summary="No command", load=lambda: len, section="More")
    yield CommandRecord(name="asking", summary="One of ours", load=lambda: len, section="Ask")
"""
NAMESAKE = """
from tfrecreg.api import CommandRecord, hookimpl

@hookimpl
def tfrecreg_commands():
    yield CommandRecord(name="list", summary="Not that one", load=lambda: len)
"""

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """``run("names", VARIABLE="value")`` in a registry, where the distribution is installed."""
    install(tmp_path / "site", "naming", PLUGIN)
    registry = new_registry(tmp_path / "registry")

    def call(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return tfrecreg("-C", registry, *arguments, env={**with_site(tmp_path / "site"), **more})

    return call


@pytest.mark.medium
def test_it_runs_with_the_session_of_the_call(run: Run, tmp_path: Path) -> None:
    done = run("names")
    assert (done.returncode, done.stdout, done.stderr) == (0, "0 names\n", "")
    (tmp_path / "registry/datasets").mkdir()
    (tmp_path / "registry/datasets/birds.toml").write_text('source = "mnist"')
    done = run("naming:names", "--json")
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout) == {"format_version": 1, "names": ["birds"]}


@pytest.mark.medium
def test_completion_knows_it(run: Run) -> None:
    asked = {"_TFRECREG_COMPLETE": "bash_complete", "TFRECREG_WORD": "na"}
    assert run(**asked, TFRECREG_LINE="tfrecreg na").stdout == "plain,names\n"
    asked["TFRECREG_WORD"] = "--f"
    assert run(**asked, TFRECREG_LINE="tfrecreg names --f").stdout == "plain,--fail\n"


def test_an_error_for_the_user_is_told_as_one_of_ours(run: Run) -> None:
    done = run("names", "--fail", "usage", "--json")
    assert done.returncode == 2
    assert done.stderr == "error: no names today\nhint: come back tomorrow\n"
    assert json.loads(done.stdout)["error"]["message"] == "no names today"


def test_a_mistake_in_it_is_one_line_that_names_the_distribution(run: Run) -> None:
    done = run("names", "--fail", "no", "--json")
    assert done.returncode == 3
    message, _ = done.stderr.splitlines()
    assert message.startswith(
        "error: the command `names` of `naming` 1.0 failed: ValueError: fail is no (naming_plugin"
    )
    assert json.loads(done.stdout)["error"]["exit_code"] == 3


@pytest.mark.medium
def test_a_command_of_the_package_cannot_be_replaced(run: Run, tmp_path: Path) -> None:
    install(tmp_path / "site", "namesake", NAMESAKE)
    assert run("list").stdout.startswith("no datasets yet")
    (broken,) = json.loads(run("plugins", "list", "--json").stdout)["broken"]
    assert broken["distribution"] == "namesake"
    assert "`list`, which tfrecreg reserves" in broken["reason"]

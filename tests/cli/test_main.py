"""The entry point: one line for what a user can cause, a traceback for a bug, 130 for ^C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests_support import interruptible

from tfrecreg.cli.digits import write_digits
from tfrecreg.cli.main import main
from tfrecreg.core.registry.init import init
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.terminal.session import Session


def test_an_unknown_command_suggests_the_one_that_was_meant(cli) -> None:
    done = cli("chekc")
    assert done.code == 2
    assert done.err.splitlines() == [
        "error: No such command 'chekc'; did you mean `check`?",
        "hint: tfrecreg --help",
    ]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("x", "Invalid value for the environment variable 'TFRECREG_JOBS': 'x' is not a valid "),
        ("0", "TFRECREG_JOBS should be at least 1, found 0"),
    ],
)
def test_a_wrong_value_in_the_environment_is_blamed_on_its_variable(
    cli, monkeypatch: pytest.MonkeyPatch, value: str, message: str
) -> None:
    monkeypatch.setenv("TFRECREG_JOBS", value)
    done = cli("check", ".")
    assert done.code == 2
    assert message in done.err
    assert "--jobs" not in done.err
    assert "'--jobs': 'y' is not" in cli("check", ".", "--jobs", "y").err


def test_without_arguments_the_help_is_shown_and_the_exit_code_is_2(cli) -> None:
    done = cli()
    assert done.code == 2
    assert "Usage: tfrecreg" in done.out + done.err


def test_C_names_the_registry(cli, tmp_path) -> None:
    init(tmp_path / "r", with_dvc=False)
    assert cli("-C", tmp_path / "r", "list").code == 0
    done = cli("-C", tmp_path / "none", "list")
    assert done.code == 2
    assert "there is no folder" in done.err


def test_a_bug_keeps_its_traceback(tmp_path) -> None:
    code = (
        "import tfrecreg.core.registry.listing as c\n"
        "def broken(registry): raise RuntimeError('a bug')\n"
        "c.list_datasets = broken\n"
        "from tfrecreg.cli.main import main\n"
        f"main(['-C', {str(tmp_path)!r}, 'list'])\n"
    )
    init(tmp_path, with_dvc=False)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "RuntimeError: a bug" in done.stderr


def test_an_interrupt_in_a_destructor_is_not_forgotten(tmp_path) -> None:
    code = (
        "import signal, sys, time\n"
        "import tfrecreg.core.registry.listing as c\n"
        "class Lost:\n"
        "    def __del__(self): signal.raise_signal(signal.SIGINT)\n"
        "def slow(registry):\n"
        "    Lost()\n"
        "    time.sleep(60)\n"
        "c.list_datasets = slow\n"
        "from tfrecreg.cli.main import run\n"
        f"sys.argv[1:] = ['-C', {str(tmp_path)!r}, 'list']\n"
        "run()\n"
    )
    init(tmp_path, with_dvc=False)
    command = [sys.executable, "-c", code]
    with interruptible():
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=50)
    assert (done.returncode, done.stderr.strip()) == (130, "error: interrupted")


def start_build(folder: Path, jobs: str) -> subprocess.Popen[str]:
    """A build of a new registry in `folder`, a leader of its own group, with a shard finished."""
    root = folder / "r"
    init(root, with_dvc=False)
    write_digits(LocalStorage(folder / "raw"), train=20_000, test=10, seed=1)
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "tfrecreg", "-C", str(root), "build", "digits"),
            *("--source", "mnist", "--raw", str(folder / "raw")),
            *("--shards", "8", "--jobs", jobs),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while not list(root.glob(".tfrecreg/stage/digits/*/journal/*.json")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return process


@pytest.mark.parametrize("jobs", [pytest.param("1", marks=pytest.mark.slow), "2"])
def test_an_interrupted_build_is_130_and_leaves_a_clean_registry(tmp_path, jobs) -> None:
    root = tmp_path / "r"
    with interruptible():
        process = start_build(tmp_path, jobs)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, (out, err)
    assert err.strip() == "error: interrupted"
    assert not (root / "data/digits").exists()
    again = subprocess.run(
        [
            *(sys.executable, "-m", "tfrecreg", "-C", str(root), "build", "digits", "--json"),
            *("--source", "mnist", "--raw", str(tmp_path / "raw"), "--shards", "8"),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(again.stdout)["resumed_shards"] >= 1
    assert not list(Path(root).glob(".tfrecreg/stage/digits/*"))


@pytest.mark.slow
def test_a_build_in_the_background_of_a_shell_ignores_the_interrupt(tmp_path) -> None:
    with interruptible():  # puts back afterwards what was there before
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # as `tfrecreg build … &` inherits it
        process = start_build(tmp_path, "2")
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, (out, err)
    assert (tmp_path / "r/data/digits/manifest.json").exists()


def test_a_broken_plugin_is_named_and_harms_nothing(cli, tmp_path, monkeypatch) -> None:
    from tfrecreg.core.plugins.manager import plugins

    info = tmp_path / "site" / "stranger-2.1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 2.1\n")
    (info / "entry_points.txt").write_text("[tfrecreg]\nodd = stranger_of_no_module\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    (tmp_path / "one.tfrecord").write_bytes(b"")
    plugins.cache_clear()
    try:
        done = cli("check", tmp_path / "one.tfrecord", "--json")
        assert done.code == 0, done.err
        assert "warning: the plugin odd of stranger 2.1 is broken: " in done.err
        assert {"crc", "manifest", "source"} <= set(done.json["validators"])
        listed = cli("plugins", "list")
        assert "broken: odd of stranger 2.1" in listed.out
        assert "mnist" in listed.out
    finally:
        plugins.cache_clear()


@pytest.mark.parametrize("is_hidden", [False, True], ids=["plain", "in the definition of a class"])
def test_an_interrupt_with_json_prints_one_document(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], is_hidden: bool
) -> None:
    class Interrupted:
        def __set_name__(self, owner: type, name: str) -> None:
            raise KeyboardInterrupt

    def interrupt(self: Session) -> None:
        if is_hidden:
            type("Defined", (), {"name": Interrupted()})  # a RuntimeError before Python 3.12
        raise KeyboardInterrupt

    monkeypatch.setattr(Session, "open", interrupt)
    assert main(["list", "--json"]) == 130
    out, err = capfd.readouterr()
    assert err.strip() == "error: interrupted"
    document = json.loads(out)
    assert document["status"] == "error"
    assert document["error"] == {"message": "interrupted", "hint": "", "exit_code": 130}

"""`tfrecreg view` as a user starts and ends it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest
from view_support import write_pets

from tfrecreg.builtin.view.run import open_server
from tfrecreg.cli.main import main
from tfrecreg.core.values.errors import FailureError


def start(*arguments: str, folder: Path, browser: str = "false") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tfrecreg", "view", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), "BROWSER": browser},
    )


@pytest.mark.medium
@pytest.mark.parametrize(
    ("ending", "form"), [(signal.SIGINT, ()), (signal.SIGTERM, ()), (signal.SIGINT, ("--json",))]
)
def test_it_prints_its_address_and_ends_cleanly(
    tmp_path: Path, ending: signal.Signals, form: tuple[str, ...]
) -> None:
    folder = write_pets(tmp_path / "pets")
    process = start(str(folder), "--no-open", "--where", "width > 9", *form, folder=tmp_path)
    try:
        assert process.stdout is not None
        text = process.stdout.readline()
        while form and not text.endswith("}\n"):
            text += process.stdout.readline()
        address = json.loads(text)["url"] if form else text.rstrip("\n")
        answer = httpx.get(address, follow_redirects=False, timeout=60)
        assert answer.status_code == 303
        assert answer.headers["location"] == "/?where=width+%3E+9"
        process.send_signal(ending)  # while the catalog and the check are being made
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, out, err) == (0, "", "")


@pytest.mark.medium
def test_it_ends_while_it_answers_a_costly_condition(tmp_path: Path) -> None:
    process = start(str(write_pets(tmp_path / "pets")), "--no-open", folder=tmp_path)
    try:
        assert process.stdout is not None
        base, _, token = process.stdout.readline().strip().partition("?token=")
        with httpx.Client(base_url=base, headers={"authorization": f"Bearer {token}"}) as client:
            while client.get("/api/t/0").json()["catalog"]["state"] == "making":
                time.sleep(0.05)
            where = {"where": "(SELECT count(*) FROM range(1000000000000)) > 5"}
            with pytest.raises(httpx.ReadTimeout):
                client.get("/api/t/0/select", params=where, timeout=1)
            threading.Timer(1, process.send_signal, [signal.SIGINT]).start()
            assert client.get("/api/t/0/select", params=where, timeout=60).status_code >= 400
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.communicate()


@pytest.mark.medium
def test_it_opens_the_browser(tmp_path: Path) -> None:
    folder = write_pets(tmp_path / "pets")
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}.new && mv {opened}.new {opened}\n')
    browser.chmod(0o755)
    process = start(str(folder), folder=tmp_path, browser=f"{browser} %s")
    try:
        assert process.stdout is not None
        address = process.stdout.readline()
        end = time.monotonic() + 60
        while not opened.exists():
            assert time.monotonic() < end
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    finally:
        process.kill()
    assert opened.read_text() == address


def command(*arguments: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = main(["view", "--no-open", *arguments])
    return code, capsys.readouterr().err


def test_without_target_and_registry_it_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command(capsys=capsys) == (
        2,
        "error: there is no registry here: name TFRecord files to view\n",
    )


def test_a_target_that_is_not_there_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code, err = command("no/such.tfrecord", capsys=capsys)
    assert code == 2
    assert err.startswith("error: ")
    assert "no/such.tfrecord" in err


def test_a_port_that_is_taken_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_pets(tmp_path / "pets")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        code, err = command(str(folder), "--port", str(port), capsys=capsys)
        assert code == 3
        assert err == f"error: port {port} cannot be used: Address already in use\n"
        with pytest.raises(FailureError, match="cannot be used"):
            open_server(str(folder), port=port)
    assert "tfrecreg-view-work" not in {each.name for each in threading.enumerate()}


def test_other_commands_import_no_server() -> None:
    program = (
        "import sys, tfrecreg.cli.main, tfrecreg.builtin.view.run\n"
        "print([each for each in ('starlette', 'uvicorn', 'anyio') if each in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[]\n"

"""The progress that verbs show by default: in a notebook and on a terminal, and nowhere else."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

import tfrecreg as tr

BUILD = """
import tfrecreg as tr
build = tr.open()["digits"].build(records_per_shard=50{more})
"""


class Watching(NotebookClient):
    """Runs a notebook, and keeps what its kernel asks to show, one after the other."""

    def process_message(self, msg: Any, cell: Any, cell_index: int) -> Any:
        if msg["msg_type"] in ("display_data", "update_display_data", "stream", "execute_result"):
            self.seen.append(msg["content"])
        return super().process_message(msg, cell, cell_index)


def shown_by_a_cell(folder: Path, code: str) -> list[dict[str, Any]]:
    """What a cell of a real kernel shows, also what it replaces later."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    client = Watching(notebook, kernel_name="python3", timeout=120)
    client.seen = []
    client.execute(cwd=str(folder))
    return client.seen


def on_a_terminal(folder: Path, code: str) -> str:
    """What a script writes to stderr where that is a terminal, without its control codes."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "NO_COLOR": "1"}
    run = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    )
    os.close(theirs)
    said = b""
    while True:
        try:
            data = os.read(ours, 1 << 16)
        except OSError:  # the other end was closed
            break
        if not data:
            break
        said += data
    os.close(ours)
    assert run.wait() == 0, said
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said.decode("utf-8"))


@pytest.mark.medium
def test_a_notebook_shows_a_bar_that_changes(digits_registry: Path) -> None:
    seen = shown_by_a_cell(digits_registry, BUILD.format(more=""))
    bars = [each for each in seen if each["transient"]]
    assert len({each["transient"]["display_id"] for each in bars}) == 1
    texts = [each["data"]["text/plain"] for each in bars]
    assert any(re.fullmatch(r"building digits ━+ 260/260 records .*", text) for text in texts)
    assert any("building digits" in each["data"].get("text/html", "") for each in bars)
    assert texts[-1] == ""
    (note,) = (each["data"]["text/plain"] for each in seen if not each["transient"])
    assert "`--save-options`" in note


@pytest.mark.medium
def test_a_notebook_shows_none_where_it_is_unwanted(digits_registry: Path) -> None:
    assert shown_by_a_cell(digits_registry, BUILD.format(more=", progress=False")) == []


@pytest.mark.medium
def test_a_notebook_shows_a_handle_once(digits_registry: Path) -> None:
    (seen,) = shown_by_a_cell(digits_registry, 'import tfrecreg as tr\ntr.open().find("digits")')
    assert seen["data"]["text/plain"].startswith("<Build digits: 200 train")
    assert seen["data"]["text/html"].count("<pre") == 1


@pytest.mark.medium
def test_a_terminal_shows_a_bar(digits_registry: Path) -> None:
    shown = on_a_terminal(digits_registry, BUILD.format(more=""))
    assert re.search(r"━+ +260/260 +records", shown)
    assert on_a_terminal(digits_registry, BUILD.format(more=", progress=False")) == ""


@pytest.mark.medium
def test_a_pipe_shows_nothing(digits_registry: Path) -> None:
    code = BUILD.format(more="")
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=digits_registry, capture_output=True, check=True
    )
    assert (done.stdout, done.stderr) == (b"", b"")


class Counting:
    """A progress of one's own."""

    def __init__(self) -> None:
        self.records = 0

    def start(self, what: str, total: int, unit: str = "records") -> None:
        self.records = 0

    def advance(self, records: int, size: int) -> None:
        self.records += records

    def stop(self) -> None:
        pass

    def note(self, message: str) -> None:
        raise AssertionError(message)


def test_a_progress_of_ones_own_is_told(
    digits_registry: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    counting = Counting()
    assert tr.open(digits_registry)["digits"].built.check(progress=counting).status == "pass"
    assert counting.records == 260
    assert capfd.readouterr() == ("", "")

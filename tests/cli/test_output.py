"""Files that a person asked for: whole or not at all, and one message where they cannot be."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from check_support import framed
from tests_support import flip

from tfrecreg.core.example.model import encode
from tfrecreg.core.example.values import int64_feature
from tfrecreg.core.terminal.output import write_text


@pytest.fixture
def shard(tmp_path: Path) -> Path:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(framed(encode({"n": int64_feature(1)})) * 3)
    return path


@pytest.mark.parametrize(
    "command",
    [
        ("check", "--only", "crc", "--output"),
        ("check", "--only", "crc", "--json", "--output"),
        ("check", "--only", "crc", "--format", "markdown", "--output"),
        ("check", "--only", "crc", "--metrics"),
        ("schema", "infer", "--output"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_written_is_told_in_the_same_words(cli, shard: Path, command) -> None:
    name, *rest = command
    arguments = (name, rest[0], shard, *rest[1:]) if name == "schema" else (name, shard, *rest)
    done = cli(*arguments, "none/it")
    assert done.code == 2
    (*_, last) = done.err.splitlines()
    assert last == "error: `none/it` cannot be written: No such file or directory"


def test_a_file_has_no_colors_though_a_terminal_has(shard: Path, tmp_path: Path) -> None:
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "tfrecreg", "check", shard, "--only", "crc", "--output", "out"]
    environment = {**os.environ, "TERM": "xterm"}
    with os.fdopen(follower, "w") as terminal, os.fdopen(leader, "rb"):
        subprocess.run(command, cwd=tmp_path, stdout=terminal, env=environment, check=True)
    assert (tmp_path / "out").read_text().endswith("\npass: 0 errors, 0 warnings (crc)\n")


@pytest.mark.parametrize("option", ["--output", "--save-json", "--metrics"])
def test_a_shard_is_never_replaced(cli, shard: Path, option: str) -> None:
    before = shard.read_bytes()
    done = cli("check", shard, "--only", "crc", option, shard)
    assert (done.code, shard.read_bytes()) == (2, before)


def test_the_old_file_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "report"
    path.write_text("old")
    with path.open() as reader:
        write_text(str(path), "new")
        assert reader.read() == "old"
    assert path.read_text() == "new"
    assert [each.name for each in tmp_path.iterdir()] == ["report"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write_text(str(tmp_path / "link"), "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_a_pipe_is_written_into(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found: list[str] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_text()))
    reader.start()
    write_text(str(pipe), "through")
    reader.join(30)
    assert (found, pipe.is_fifo()) == (["through"], True)


def test_a_draft_of_damaged_data_says_what_it_left_out(cli, shard: Path, tmp_path: Path) -> None:
    flip(shard, 14)
    draft = tmp_path / "draft.pbtxt"
    written = cli("schema", "infer", shard, "--output", draft)
    shown = cli("schema", "infer", shard)
    document = cli("schema", "infer", shard, "--json")
    assert (written.code, shown.code, document.code) == (1, 1, 1)
    assert draft.read_text() == shown.out == document.json["schema"]
    message = f"error: 1 damaged place was skipped; the first is record 0 of `{shard}`, at byte"
    for done in (written, shown):
        assert message in done.err
        assert f"hint: tfrecreg check {shard}" in done.err
    assert document.err == ""
    assert document.json["damage"][0]["reason"].startswith("CRC002: ")


@pytest.mark.medium
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_terminal_without_unicode_gets_escapes(tmp_path: Path, encoding: str) -> None:
    script = "from tfrecreg.testing import write_digits; write_digits('raw')"
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    for command in (
        [sys.executable, "-c", script],
        [sys.executable, "-m", "tfrecreg", "init", "--no-dvc"],
        [sys.executable, "-m", "tfrecreg", "build", "mnist", "--source", "mnist", "--raw", "raw"],
        [sys.executable, "-m", "tfrecreg", "show", "mnist"],
        [sys.executable, "-m", "tfrecreg", "check", "mnist"],
    ):
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True)
        assert (done.returncode, b"Traceback" in done.stderr) == (0, False)
    assert ("×" if encoding != "ascii" else "\\xd7").encode(encoding) in done.stdout

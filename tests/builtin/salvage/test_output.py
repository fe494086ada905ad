"""The folder: nothing of it is seen before all of it is there, and the mark is its last file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from salvage_support import filler, make, put
from system_support import Refusing, installed

from tfrecreg.builtin.salvage.run import salvage
from tfrecreg.core.storage.interface import Writer
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import StorageError, UsageError

KILLED = """
import os, signal, sys
from tfrecreg.builtin.salvage.run import salvage
from tfrecreg.core.storage.writer import LocalWriter
closes = 0
close = LocalWriter.close
def killing(self):
    global closes
    close(self)
    closes += 1
    if closes == int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
LocalWriter.close = killing
salvage([sys.argv[1]], sys.argv[2])
"""


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    made = make([filler(number) for number in range(20)])
    data = bytearray(made.data)
    data[550] ^= 1
    (tmp_path / "in").mkdir()
    return put(tmp_path / "in", bytes(data))


@pytest.mark.parametrize("after", [1, 2, 3])
def test_killed_after_any_file_leaves_no_folder_without_its_mark(
    tmp_path: Path, damaged: Path, after: int
) -> None:
    output = tmp_path / "out"
    command = [sys.executable, "-c", KILLED, str(damaged), str(output), str(after)]
    done = subprocess.run(command, check=False, cwd=tmp_path, env={**os.environ})
    assert done.returncode == -signal.SIGKILL
    assert not output.exists()
    salvage([str(damaged)], output)
    assert (output / "salvage.json").exists()


def test_the_mark_is_written_last(
    tmp_path: Path, damaged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    create = LocalStorage.create

    def noting(self: LocalStorage, path: str, *, durable: bool = True) -> Writer:
        assert durable
        order.append(path)
        return create(self, path)

    monkeypatch.setattr(LocalStorage, "create", noting)
    salvage([str(damaged)], tmp_path / "out")
    assert order[-1] == "salvage.json"
    assert sorted(order[:-1]) == ["x.tfrecord", "x.tfrecord.quarantine"]


def test_empty_folder_is_taken(tmp_path: Path, damaged: Path) -> None:
    (tmp_path / "out").mkdir()
    salvage([str(damaged)], tmp_path / "out")
    assert (tmp_path / "out/x.tfrecord").exists()


def test_what_the_machine_does_not_read_is_told_of_the_shard(tmp_path: Path, damaged: Path) -> None:
    """The others are salvaged. What the machine does not write ends the salvage."""
    put(damaged.parent, make([filler(1)]).data, name="y.tfrecord")
    with installed(Refusing("read", "/x.tfrecord")):
        result = salvage([str(damaged.parent)], tmp_path / "out")
    found = {each.name: (each.status, each.reason) for each in result.shards}
    assert found["x.tfrecord"][0] == "unreadable"
    assert found["x.tfrecord"][1].endswith("Input/output error")
    assert found["y.tfrecord"] == ("sound", "")
    assert sorted(each.name for each in (tmp_path / "out").iterdir()) == [
        "salvage.json",
        "y.tfrecord",
    ]
    with installed(Refusing("write", ".tmp")), pytest.raises(StorageError):
        salvage([str(damaged.parent)], tmp_path / "more")
    assert not (tmp_path / "more").exists()


def test_report_is_the_same_wherever_the_folder_is(tmp_path: Path, damaged: Path) -> None:
    salvage([str(damaged)], tmp_path / "one")
    salvage([str(damaged)], tmp_path / "deeper/two")
    one, two = tmp_path / "one/salvage.json", tmp_path / "deeper/two/salvage.json"
    assert one.read_bytes() == two.read_bytes()


def test_folder_that_a_link_leads_to_is_the_originals(tmp_path: Path, damaged: Path) -> None:
    (tmp_path / "link").symlink_to(damaged.parent)
    with pytest.raises(UsageError, match="is not empty"):
        salvage([str(damaged)], tmp_path / "link")

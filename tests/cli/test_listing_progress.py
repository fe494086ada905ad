"""Listing and measuring raw data show a running count on a terminal, and nothing in a pipe."""

from __future__ import annotations

import os
import pickle
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from image_support import png

from tfrecreg.builtin.python_data.build import build
from tfrecreg.core.build.request import BuildRequest
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.run import check
from tfrecreg.core.registry.init import init
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.storage.local import LocalReader
from tfrecreg.core.storage.raw import RawFolder

FILES = 250


class Watcher:
    """Somebody who watches: each piece of work with its unit, how often it told, and its count."""

    def __init__(self) -> None:
        self.works: list[list[object]] = []
        self.open = 0

    def start(self, what: str, total: int, unit: str = "records") -> None:
        assert self.open == 0, "pieces of work follow each other"
        self.open = 1
        self.works.append([what, unit, 0, 0])

    def advance(self, records: int, size: int) -> None:
        if self.open:
            self.works[-1][2] += 1  # type: ignore[operator]
            self.works[-1][3] += records  # type: ignore[operator]

    def stop(self) -> None:
        self.open = 0

    def note(self, message: str) -> None:
        pass

    def counts(self) -> dict[object, tuple[object, object]]:
        return {what: (unit, count) for what, unit, _, count in self.works}


@pytest.fixture
def images(tmp_path: Path) -> Path:
    folder = tmp_path / "raw/cat"
    folder.mkdir(parents=True)
    for number in range(FILES):
        (folder / f"{number}.png").write_bytes(png(3, 3, seed=number))
    init(tmp_path / "registry", with_dvc=False)
    return folder.parent


def test_every_phase_of_a_build_tells_how_far_it_is(images: Path, tmp_path: Path) -> None:
    registry = open_registry(tmp_path / "registry")
    watcher = Watcher()
    request = BuildRequest(name="pets", source="imagefolder", raw=str(images))
    build(registry, request, progress=watcher)
    counts = watcher.counts()
    assert list(counts) == [
        "listing raw data",
        "measuring raw data",
        "planning pets",
        "building pets",
        "checking pets",
        "checking whether raw data changed",
    ]
    # The layout is found by a look ahead, so names are listed more than once.
    unit, listed = counts.pop("listing raw data")
    assert unit == "files"
    assert isinstance(listed, int)
    assert listed >= FILES
    assert counts["measuring raw data"] == ("files", FILES)
    assert counts["planning pets"] == ("items", FILES)
    assert counts["building pets"] == ("records", FILES)
    assert counts["checking whether raw data changed"] == ("files", FILES)
    assert [told for what, _, told, _ in watcher.works if what == "measuring raw data"] == [3]
    watcher = Watcher()
    check(
        ["pets"],
        registry=tmp_path / "registry",
        options=CheckOptions(raw=str(images)),
        progress=watcher,
    )
    assert watcher.counts()["measuring raw data"] == ("files", FILES)


def test_a_worker_counts_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    watcher = Watcher()
    watcher.start("listing", 0)
    storage = RawFolder(tmp_path, watcher)
    with pickle.loads(pickle.dumps(storage)).open("file") as reader:
        assert type(reader) is LocalReader
    with storage.open("file") as reader:
        assert (reader.read_at(1, 3), reader.size) == (b"234", 5)
    assert [entry.path for entry in storage.list()] == ["file"]


def command(images: Path) -> list[str]:
    return [
        *(sys.executable, "-m", "tfrecreg", "build", "pets"),
        *("--source", "imagefolder", "--raw", str(images), "--jobs", "1"),
    ]


@pytest.mark.medium
def test_a_terminal_shows_a_running_count(images: Path, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "NO_COLOR": "1"}
    run = subprocess.Popen(
        command(images),
        cwd=tmp_path / "registry",
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
    assert run.wait() == 0
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said.decode("utf-8"))
    assert re.search(r"listing raw data .*\d+/\?\s+files", shown)
    assert re.search(rf"measuring raw data .*{FILES}/\?\s+files", shown)
    assert re.search(rf"planning pets .*{FILES}/\?\s+items", shown)


@pytest.mark.medium
def test_a_pipe_shows_nothing(images: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        command(images), cwd=tmp_path / "registry", capture_output=True, check=True, text=True
    )
    assert done.stderr == ""

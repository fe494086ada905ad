"""Hints lead from every state of damage to repaired data, or to a command that states that the data
cannot be repaired here. They never lead in a circle.
"""

from __future__ import annotations

import itertools
import random
import re
import shlex
import shutil
from pathlib import Path

import pytest

from tfrecreg.cli.main import main

pytest.importorskip("dvc", reason="the extra `dvc` is not installed")

from git_support import git
from remote_support import Cache, Place, configure, files_of_release, made, registry_at

from tfrecreg.builtin.dvc.transfer import pull, push
from tfrecreg.core.check.run import check
from tfrecreg.core.registry.registry import open_registry

_COMMAND = re.compile(r"tfrecreg ([a-z]+(?: [^\s`;,)]+)*)")
_PLACEHOLDER = re.compile(r"\b[A-Z]{3,}\b|…")
_ELSEWHERE = "from a machine that has it"
_STATED = ("cannot be repaired here", "cannot be repaired, and nothing was changed", _ELSEWHERE)
_MOST = 12


class Walk:
    """Which commands were run, and how it ended."""

    def __init__(self) -> None:
        self.commands: list[str] = []
        self.texts: list[str] = []
        self.done = False
        """Whether the first command succeeded in the end; else the last one gave the reason."""

    def __str__(self) -> str:
        pairs = zip(self.commands, self.texts, strict=False)
        return "\n".join(f"$ {command}\n{text}" for command, text in pairs)


def follow(root: Path, start: str, capsys: pytest.CaptureFixture[str]) -> Walk:
    """Run a command; while it fails, follow the first command of its hint that can be run here.
    After one that succeeded, the one that named it is run again.

    Fails on a cycle, and on an end that neither succeeds nor states that nothing helps here.
    """
    walk = Walk()
    waiting: list[str] = []
    command = start
    while True:
        walk.commands.append(command)
        capsys.readouterr()
        code = main(["-C", str(root), *shlex.split(command)])
        printed = capsys.readouterr()
        text = " ".join((printed.err + printed.out).split())
        walk.texts.append(text)
        assert len(walk.commands) <= _MOST, f"no end:\n{walk}"
        if code == 0:
            if not waiting:
                walk.done = True
                return walk
            command = waiting.pop()
            continue
        here = _hinted(text)
        if here is None:
            assert any(each in text for each in _STATED), f"neither repaired nor stated:\n{walk}"
            return walk
        if here in (*waiting, command):
            stated = any(each in said for said in walk.texts for each in _STATED)
            assert stated, f"a circle to `{here}`:\n{walk}"
            return walk
        waiting.append(command)
        command = here


def _hinted(text: str) -> str | None:
    """The first command of the hints that can be run here."""
    hints = text.split("hint: ")[1:]
    for hint in hints:
        for match in _COMMAND.finditer(hint.partition(_ELSEWHERE)[0]):
            if not _PLACEHOLDER.search(match[1]) and match[1].split()[0] != "salvage":
                return match[1].rstrip(".")
    return None


SHARD = "digits-test.tfrecord-00000-of-00002"
INDEX = f"index/{SHARD}.index"
REFERENCE = "digits@1.0.0"
COPIES = ("none", "sound", "lost", "damaged")
FATES = ("sound", "lost", "damaged")
STARTS = (
    f"check {REFERENCE}",
    f"pull {REFERENCE}",
    f"push {REFERENCE}",
    f"push --verify {REFERENCE}",
    f"repair {REFERENCE}",
)
STATES = list(itertools.product(COPIES, FATES, FATES, (True, False)))


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A registry with two releases; the first one is in its cache, its remote and `versions/`."""
    folder = tmp_path_factory.mktemp("hints")
    root = registry_at(folder / "registry")
    configure(root, "../../remote")
    made(root, 1, "1.0.0")
    made(root, 2, "2.0.0")
    push(open_registry(root))
    pull(open_registry(root), REFERENCE)
    (root / "datasets").mkdir(exist_ok=True)
    (root / "datasets/digits.toml").write_text('source = "mnist"\nraw = "../raw1"\n')
    git(root, "add", "-A")
    git(root, "commit", "-qm", "The raw data of 1.0.0")
    return folder


def spoilt(data: bytes) -> bytes:
    return data[:-40] + bytes(each ^ 1 for each in data[-40:])


class Damaged:
    """A copy of the registry in a state of damage."""

    def __init__(self, original: Path, target: Path, path: str, state: tuple) -> None:
        copy, cached, remote, raw = state
        shutil.copytree(original, target, symlinks=True)
        self.root = target / "registry"
        self.cache, self.remote = Cache(self.root), Place(target / "remote")
        self.files = files_of_release(self.root, "1.0.0", self.cache)
        self.bytes = self.cache.sound()
        self.folder = self.root / "versions/digits/1.0.0"
        oid = self.files[path]
        for place, fate in ((self.cache, cached), (self.remote, remote)):
            if fate == "lost":
                place.remove(oid)
            elif fate == "damaged":
                place.put(oid, spoilt(self.bytes[oid]))
        if copy == "none" or not path:
            shutil.rmtree(self.folder)
        elif copy == "lost":
            (self.folder / path).unlink()
        elif copy == "damaged":
            (self.folder / path).write_bytes(spoilt(self.bytes[oid]))
        if not raw:
            shutil.rmtree(target / "raw1")

    def lost(self) -> list[str]:
        """Files of the release of which no place has the bytes."""
        there = {**self.cache.sound(), **self.remote.sound()}
        lost = [path for path, oid in self.files.items() if oid not in there]
        return [path for path in lost if not path or not self._copied(path)]

    def _copied(self, path: str) -> bool:
        found = self.folder / path
        return found.is_file() and found.read_bytes() == self.bytes[self.files[path]]


def walk(
    original: Path,
    target: Path,
    path: str,
    state: tuple,
    start: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    damaged = Damaged(original, target, path, state)
    lost, raw = damaged.lost(), state[-1]
    walked = follow(damaged.root, start, capsys)
    what = f"{path!r} {state}\n{walked}"
    # Nothing that a place had is gone, and what a command says is so.
    assert not set(damaged.lost()) - set(lost), what
    if walked.done:
        if start.startswith("push"):
            assert set(damaged.files.values()) <= {*damaged.remote.all()}, what
            if "--verify" in start:
                assert set(damaged.files.values()) <= {*damaged.remote.sound()}, what
        else:
            (report,) = check([REFERENCE], registry=damaged.root)
            assert report.status == "pass", what
            assert not [each for each in damaged.lost() if each], what
    else:
        assert lost, f"every byte is somewhere:\n{what}"
        # Of a lost shard the raw data give the bytes again.
        assert not (raw and path == SHARD), what
    shutil.rmtree(target)


@pytest.mark.parametrize(
    ("path", "state", "start"),
    [
        (SHARD, ("none", "lost", "lost", True), STARTS[0]),
        (SHARD, ("none", "damaged", "lost", False), STARTS[1]),
        (SHARD, ("damaged", "lost", "sound", False), STARTS[0]),
        (SHARD, ("sound", "damaged", "damaged", False), STARTS[3]),
        ("", ("none", "lost", "lost", False), STARTS[2]),
        ("manifest.json", ("none", "lost", "lost", True), STARTS[2]),
        (INDEX, ("lost", "lost", "lost", False), STARTS[4]),
    ],
)
def test_hints_lead_out(
    original: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    path: str,
    state: tuple,
    start: str,
) -> None:
    walk(original, tmp_path / "story", path, state, start, capsys)


@pytest.mark.slow
@pytest.mark.sweep
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("path", [SHARD, INDEX, "manifest.json", ""])
def test_hints_lead_out_of_every_state(
    original: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], path: str, start: str
) -> None:
    states = STATES if path == SHARD else random.Random(path).sample(STATES, 6)
    for state in states:
        walk(original, tmp_path / "story", path, state, start, capsys)

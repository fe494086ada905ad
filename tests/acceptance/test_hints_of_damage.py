"""From every state of damage the hints lead to repaired data, or to a command that states that they
cannot be repaired here; never in a circle.
"""

from __future__ import annotations

import itertools
import random
import shutil
from pathlib import Path

import pytest

pytest.importorskip("dvc", reason="the extra `dvc` is not installed")

from hints_support import follow
from remote_support import Cache, FolderPlace, configure, files_of_release, git, made, registry_at

from tfrecreg.builtin.dvc.transfer import pull, push
from tfrecreg.core.check.run import check
from tfrecreg.core.registry.registry import open_registry

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
        self.cache, self.remote = Cache(self.root), FolderPlace(target / "remote")
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

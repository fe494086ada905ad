"""A remote loses, damages, truncates and hides objects, and files of three clones decay. No command
loses bytes that one place still had, and no command claims what is false.


All choices follow from the seed of a test. What the places have is looked at directly.
"""

from __future__ import annotations

import hashlib
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("dvc", reason="the extra `dvc` is not installed")

from git_support import git
from radosgw_support import ENVIRONMENT
from remote_support import (
    Cache,
    Place,
    S3Place,
    clone,
    configure,
    files_of_release,
    made,
    registry_at,
)
from s3_support import S3, SERVER, s3_server

from tfrecreg.builtin.dvc.garbage import gc
from tfrecreg.builtin.dvc.transfer import pull, push
from tfrecreg.cli.digits import write_digits
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import TfrecregError

pytestmark = pytest.mark.slow

ROUNDS = 10
CHUNKS = 10
"""In a folder and in moto's S3 these are 200 rounds."""
FURTHER = 3
"""Chunks with Ceph's object gateway."""
SIZE = {"train": 6, "test": 3}
SEEDS = range(1, 9)
"""Of the raw data of one release each."""


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A registry with one release, and the raw data of more."""
    folder = tmp_path_factory.mktemp("lossy")
    made(registry_at(folder / "registry"), SEEDS[0], "1.0.0", **SIZE)
    for seed in SEEDS:
        if not (folder / f"raw{seed}").exists():
            write_digits(LocalStorage(folder / f"raw{seed}"), seed=seed, **SIZE)
    return folder


@pytest.fixture(scope="module")
def moto() -> Iterator[S3]:
    with s3_server() as server:
        yield server


class World:
    """Three clones of a repository, and a DVC remote."""

    def __init__(self, folder: Path, remote: Place, url: str, seed: str, **options: str) -> None:
        self.random = random.Random(seed)
        self.remote = remote
        self.hidden: dict[str, bytes] = {}
        self.truth: dict[str, bytes] = {}
        """The bytes of each object of a release."""
        self.releases: dict[str, dict[str, str]] = {}
        """The object by path, by version of the release."""
        self.log: list[str] = []
        first = folder / "registry"
        configure(first, url, **options)
        git(first, "commit", "-qam", "A remote")
        self.origin = folder / "origin.git"
        git(folder, "clone", "-q", "--bare", str(first), str(self.origin))
        git(first, "remote", "add", "origin", str(self.origin))
        git(first, "fetch", "-q", "origin")
        git(first, "branch", "-q", "--set-upstream-to=origin/main")
        self.clones = [first, *(clone(self.origin, folder / name) for name in ("second", "third"))]
        self._record(first, "1.0.0")

    def _record(self, root: Path, version: str) -> None:
        files = files_of_release(root, version, Cache(root))
        self.releases[version] = files
        sound = Cache(root).sound()
        self.truth.update((oid, sound[oid]) for oid in files.values())

    # What places have

    def of_clone(self, root: Path, *, data: bool = True) -> set[str]:
        """The objects whose bytes a clone has, as an object or as a file."""
        found = set(Cache(root).sound())
        for path in (*root.glob("versions/**/*"), *(root.glob("data/**/*") if data else ())):
            if path.is_file():
                found.add(hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest())
        for files in self.releases.values():
            # Whoever has all files can write their list again.
            if {oid for path, oid in files.items() if path} <= found:
                found.add(files[""])
        return found & self.truth.keys()

    def of_remote(self) -> set[str]:
        return set(self.remote.sound()) & self.truth.keys()

    def anywhere(self) -> set[str]:
        return self.of_remote().union(*map(self.of_clone, self.clones))

    # What goes wrong

    def decay(self) -> None:
        """One object of the remote, or one file of a clone, is lost or damaged; or the remote
        shows one again that it hid."""
        fate = self.random.choice(["lose", "flip", "cut", "hide", "show", "file", "file", "cache"])
        if fate == "show":
            if self.hidden:
                oid = self.random.choice(sorted(self.hidden))
                self.remote.put(oid, self.hidden.pop(oid))
                self.log.append(f"the remote shows {oid}")
            return
        if fate in ("file", "cache"):
            self._decay_clone(whole=fate == "cache")
            return
        objects = self.remote.all()
        if not objects:
            return
        oid = self.random.choice(sorted(objects))
        self.log.append(f"the remote: {fate} {oid}")
        if fate == "hide":
            self.hidden[oid] = objects[oid]
        if fate in ("lose", "hide"):
            self.remote.remove(oid)
        else:
            self.remote.put(oid, self._spoilt(objects[oid], fate))

    def _decay_clone(self, *, whole: bool) -> None:
        root = self.random.choice(self.clones)
        if whole and self.random.random() < 0.4:
            shutil.rmtree(root / ".dvc/cache", ignore_errors=True)
            self.log.append(f"{root.name}: lose the cache")
            return
        places = [*root.glob("versions/*/*/**/*"), *root.glob(".dvc/cache/files/md5/??/*")]
        places += root.glob("data/digits/**/*")
        files = sorted(path for path in places if path.is_file())
        if not files:
            return
        path = self.random.choice(files)
        fate = self.random.choice(["lose", "flip", "cut"])
        self.log.append(f"{root.name}: {fate} {path.relative_to(root)}")
        data = path.read_bytes()
        mode = path.stat().st_mode
        path.unlink()  # it may be a link
        if fate != "lose":
            path.write_bytes(self._spoilt(data, fate))
            path.chmod(mode)

    def _spoilt(self, data: bytes, fate: str) -> bytes:
        if fate == "cut" or not data:
            return data[: self.random.randrange(len(data) + 1)]
        at = self.random.randrange(len(data))
        return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]

    # What is done

    def act(self) -> None:
        """One command in one clone, and what has to be so afterwards."""
        root = self.random.choice(self.clones)
        git(root, "checkout", "-q", "--", ".")
        git(root, "pull", "-q", "--ff-only")
        version = self.random.choice(sorted(self.releases))
        actions: list[tuple[str, Callable[[], Any]]] = [
            ("push", lambda: self._push(root)),
            ("push --verify", lambda: self._push(root, verify=True)),
            ("push --repair", lambda: self._push(root, repair=True)),
            (f"pull {version}", lambda: self._pull(root, version)),
            (f"pull {version}", lambda: self._pull(root, version)),
            ("gc", lambda: gc(open_registry(root))),
            ("gc --apply", lambda: self._gc(root)),
            ("gc --apply", lambda: self._gc(root)),
        ]
        if len(self.releases) < len(SEEDS):
            actions.append(("release", lambda: self._release(root)))
        name, action = self.random.choice(actions)
        self.log.append(f"{root.name}: {name}")
        before = self.anywhere()
        if name == "release":  # its build takes the place of the one before
            others = (self.of_clone(each, data=each != root) for each in self.clones)
            before &= self.of_remote().union(*others)
        try:
            action()
        except TfrecregError as error:
            self.log.append(f"    {type(error).__name__}: {error.message}")
        lost = before - self.anywhere()
        assert not lost, f"lost: {lost}"
        assert not list(root.glob(".dvc/cache/files/md5/??/.*.tmp"))

    def _push(self, root: Path, *, verify: bool = False, repair: bool = False) -> None:
        here, there = self.of_clone(root), self.remote.all()
        try:
            found = push(open_registry(root), verify=verify, repair=repair)
        except TfrecregError:
            self._expect_sent(here, set(there), repair=repair)
            after = self.remote.all()
            wanted = {oid for files in self.releases.values() for oid in files.values()}
            wrong = {oid for oid in wanted if len(after.get(oid, b"")) != len(self.truth[oid])}
            # Only what is wrong is refused.
            assert wrong | (wanted - self.of_remote() if verify or repair else set()) or (
                wanted - self.of_remote()
            ), "all is well, and it was refused"
            raise
        assert len(found.releases) == len(self.releases)
        after = self.remote.all()
        for files in self.releases.values():
            for oid in files.values():
                assert len(after[oid]) == len(self.truth[oid]), f"claimed: {oid}"
                if verify or repair:
                    assert after[oid] == self.truth[oid], f"claimed: {oid}"

    def _expect_sent(self, here: set[str], there: set[str], *, repair: bool) -> None:
        """What the remote lacked, and this clone had, was sent, though something else was not."""
        sound = self.of_remote()
        for files in self.releases.values():
            if files[""] not in here and files[""] not in sound:
                continue  # nobody knows its files
            for path, oid in files.items():
                if path and oid in here and (repair or oid not in there):
                    assert oid in sound, f"not sent: {oid}"

    def _pull(self, root: Path, version: str) -> None:
        reachable = self.of_clone(root) | self.of_remote()
        files = self.releases[version]
        try:
            found = pull(open_registry(root), f"digits@{version}")
        except TfrecregError:
            assert set(files.values()) - reachable, "every byte was in reach"
            raise
        for path, oid in files.items():
            if path:
                assert (root / found.folder / path).read_bytes() == self.truth[oid], path

    def _gc(self, root: Path) -> None:
        before = self.of_remote()
        for each in gc(open_registry(root), apply=True):
            if each.kind == "version":
                version = each.path.rpartition("/")[2]
                lacking = set(self.releases[version].values()) - before
                assert not lacking, f"the copy of {version} went: {lacking}"

    def _release(self, root: Path) -> None:
        number = len(self.releases) + 1
        version = f"{number}.0.0"
        made(root, SEEDS[number - 1], version, **SIZE)
        git(root, "push", "-q", "origin", "HEAD:main")
        self._record(root, version)


@pytest.mark.parametrize(
    ("kind", "chunk"),
    [
        *(("folder", chunk) for chunk in range(CHUNKS)),
        *(("moto", chunk) for chunk in range(CHUNKS)),
        *(("radosgw", chunk) for chunk in range(FURTHER)),
    ],
)
@pytest.mark.sweep
def test_nothing_is_lost_and_nothing_is_claimed(
    original: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    chunk: int,
) -> None:
    folder = Path(shutil.copytree(original, tmp_path / "world", symlinks=True))
    seed = f"{kind}-{chunk}"
    if kind != "folder":
        pytest.importorskip("dvc_s3", reason="DVC's support of S3 is not installed")
        if kind not in ("moto", SERVER):
            pytest.skip("Ceph's object gateway is not installed")
        for name, value in ENVIRONMENT.items():
            monkeypatch.setenv(name, value)
        server: S3 = request.getfixturevalue("moto" if kind == "moto" else "s3")
        bucket = f"lossy-{chunk}"
        server.client.create_bucket(Bucket=bucket)
        endpoint = f"http://127.0.0.1:{server.port}"
        remote: Place = S3Place(server, bucket)
        world = World(folder, remote, f"s3://{bucket}/dvc", seed, endpointurl=endpoint)
    else:
        world = World(folder, Place(folder / "remote"), str(folder / "remote"), seed)
    push(open_registry(world.clones[0]))
    try:
        for _ in range(ROUNDS):
            for _ in range(world.random.randrange(4)):
                world.decay()
            world.act()
    except BaseException:
        print("\n".join(world.log))
        raise

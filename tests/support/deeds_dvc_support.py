"""Deeds in a git repository with DVC."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from deed_support import Deed
from deeds_publish_support import Gc, Release
from git_support import commit, git, start
from registry_support import write

from tfrecreg.builtin.dvc.pipeline import pipeline
from tfrecreg.builtin.dvc.transfer import pull, push
from tfrecreg.builtin.releases.tag import TagRequest, tag
from tfrecreg.core.registry.init import init
from tfrecreg.core.registry.registry import open_registry


class _WithDvc(Deed):
    """Begins with a release that is committed, whose bytes DVC keeps, and a remote without them."""

    with_dvc = True
    shares = True

    def prepare(self) -> None:
        start(self.root)
        init(self.root)
        with (self.root / ".dvc/config").open("a") as config:
            config.write("[core]\n    remote = store\n['remote \"store\"']\n")
            config.write(f"    url = {self.folder / 'remote'}\n")
        self.build(1)
        self.release("1.0.0")
        commit(self.root, "Release digits@1.0.0")

    def reset(self) -> None:
        super().reset()
        shutil.rmtree(self.folder / "remote", ignore_errors=True)
        if (self.folder / "remote-at-start").exists():
            shutil.copytree(self.folder / "remote-at-start", self.folder / "remote")

    @contextmanager
    def dvc(self) -> Iterator[Any]:
        """DVC's own repository, as its commands with `--wait-for-lock` open it."""
        from dvc.repo import Repo

        os.chdir(self.root)
        os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # for stages
        os.environ["DVC_NO_ANALYTICS"] = "1"
        os.environ["DVC_SITE_CACHE_DIR"] = str(self.folder / "site")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Repo(str(self.root), _wait_for_lock=True) as repo:
                yield repo


class ReleaseDvc(Release, _WithDvc):
    """Release a build beside an older release, and have DVC keep its bytes."""


class ReleaseStage(_WithDvc):
    """Release the output of a pipeline's stage, whose bytes DVC keeps already."""

    released = ()
    adds = ("1.0.0",)
    shares = False

    def prepare(self) -> None:
        start(self.root)
        init(self.root)
        shutil.copytree(self.folder / "raw1", self.root / "raw")
        (self.root / ".gitignore").write_text("/raw/\n")
        config = 'source = "mnist"\nraw = "raw"\nshards = 2\n'
        write(self.root / "datasets/digits.toml", config)
        pipeline(open_registry(self.root), ["digits"])
        self.reproduce()
        commit(self.root, "Build digits")

    def reproduce(self) -> None:
        with self.dvc() as repo:
            repo.reproduce(["build-digits"])

    def do(self) -> None:
        self.release("1.0.0")

    def then(self) -> None:
        shutil.rmtree(self.root / "raw")
        shutil.copytree(self.folder / "raw3", self.root / "raw")
        self.reproduce()
        self.release("9.0.0")


class DvcRepro(ReleaseStage):
    """Have DVC make a build anew, after another one was released."""

    released = ("1.0.0",)
    adds = ()

    def prepare(self) -> None:
        super().prepare()
        self.release("1.0.0")
        commit(self.root, "Release digits@1.0.0")
        shutil.rmtree(self.root / "raw")
        shutil.copytree(self.folder / "raw2", self.root / "raw")

    def do(self) -> None:
        self.reproduce()

    def then(self) -> None:
        self.release("2.0.0")
        super().then()


class DvcAdd(_WithDvc):
    """Have DVC keep an unreleased build."""

    def prepare(self) -> None:
        super().prepare()
        self.build(2)

    def do(self) -> None:
        with self.dvc() as repo:
            repo.add("data/digits")

    def then(self) -> None:
        self.release("2.0.0")
        super().then()


class DvcCheckout(_WithDvc):
    """Have DVC restore an unreleased build over that of the release."""

    def prepare(self) -> None:
        super().prepare()
        released = (self.root / "data/digits.dvc").read_bytes()
        self.build(2)
        self.add()
        added = (self.root / "data/digits.dvc").read_bytes()
        (self.root / "data/digits.dvc").write_bytes(released)
        self.check_out()
        (self.root / "data/digits.dvc").write_bytes(added)

    def add(self) -> None:
        with self.dvc() as repo:
            repo.add("data/digits")

    def check_out(self) -> None:
        with self.dvc() as repo:
            repo.checkout(["data/digits.dvc"], force=True)

    def do(self) -> None:
        self.check_out()


class Push(_WithDvc):
    """Send a release to a remote."""

    def do(self) -> None:
        push(open_registry(self.root))


class Pull(_WithDvc):
    """Bring a release's bytes to a clone."""

    shares = False

    def prepare(self) -> None:
        super().prepare()
        push(open_registry(self.root))
        shutil.copytree(self.folder / "remote", self.folder / "remote-at-start")
        self.root.rename(self.folder / "origin")
        git(self.folder, "clone", "--quiet", "origin", "work")

    def do(self) -> None:
        pull(open_registry(self.root), "digits@1.0.0")

    def expect_done(self, said: str = "") -> None:
        super().expect_done(said)
        assert self.clean("digits@1.0.0")

    def expect_beside_gc(self) -> None:
        self.expect_verified()  # the copy may be gone again: the remote has it as well


class GcDvc(Gc):
    """Remove from DVC's cache a build that nothing refers to."""

    released = ("1.0.0",)
    with_dvc = True

    def prepare(self) -> None:
        init(self.root)
        self.build(1)
        self.release("1.0.0")
        kept = shutil.copytree(self.root, self.folder / "kept", symlinks=True)
        self.build(2)
        self.release("2.0.0")
        shutil.rmtree(self.root / "registry/digits/2.0.0")
        for place in ("data", ".tfrecreg/cache/index"):
            shutil.rmtree(self.root / place)
            shutil.copytree(kept / place, self.root / place)
        self.litter("cache/index/ab/cdef")


class Tag(_WithDvc):
    """Tag a release that is committed to git, whose bytes DVC keeps."""

    def do(self) -> None:
        tag(open_registry(self.root), TagRequest(reference="digits@1.0.0", stage="prod"))

    def tags(self) -> set[str]:
        return set(git(self.root, "tag").split())

    def expect_unharmed(self, acknowledged: Sequence[str] = ()) -> None:
        super().expect_unharmed(acknowledged)
        assert self.tags() <= {"digits@v1.0.0", "digits#prod#1"}

    def expect_done(self, said: str = "") -> None:
        super().expect_done(said)
        assert len(self.tags()) == 2

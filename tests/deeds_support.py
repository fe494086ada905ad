"""What may be interrupted: a deed, what it starts from, and what has to be true behind it.

A deed is done in a folder that :meth:`Deed.reset` puts back to its start. Interrupted by whatever,
it leaves what :meth:`Deed.expect_unharmed` asks for; done to its end, what nothing disturbed would
have left. On sys.path by `pythonpath` in pyproject.toml.
"""

from __future__ import annotations

import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from git_support import commit, git, start
from salvage_support import filler, make, put
from tests_support import flip, tree

from tfrecreg.gate import FailOn
from tfrecreg.operations.builds import BuildRequest, build
from tfrecreg.operations.catalog import list_datasets
from tfrecreg.operations.check import CheckOptions, check
from tfrecreg.operations.demo import write_digits
from tfrecreg.operations.init import init
from tfrecreg.operations.release import ReleaseRequest, release
from tfrecreg.operations.remote import gc
from tfrecreg.operations.salvage import salvage
from tfrecreg.operations.tag import TagRequest, tag
from tfrecreg.registry import open_registry, resolve
from tfrecreg.shards import ShardPolicy
from tfrecreg.storage import LocalStorage, is_temporary

__all__ = ["DEEDS", "Deed", "deed"]

_VISIBLE = ("data", "versions", "registry", "schemas", "tfrecreg.toml", "in", "out")
"""What of the folder people see: not the state of this machine, and nothing hidden."""
_CREATED = re.compile(rb'"created":"[^"]*"')


class Deed(ABC):
    """Something that is done to a registry with the dataset `digits`, or beside it.

    Args:
        folder: to be filled: the registry, or what is salvaged, is in its folder `work`.
    """

    released: tuple[str, ...] = ("1.0.0",)
    """The releases that are acknowledged before it begins."""
    adds: tuple[str, ...] = ()
    """Those that it makes."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.root = folder, folder / "work"
        for seed in (1, 2):
            raw = LocalStorage(folder / f"raw{seed}")
            write_digits(raw, train=6, test=3, seed=seed)
        self.prepare()
        self.start = shutil.copytree(self.root, folder / "start", symlinks=True)
        self.before = self.seen()
        self.do()
        self.after = self.seen()
        self.expect_unharmed(self.adds)
        self.reset()

    def prepare(self) -> None:
        """Make what it starts from, in `root`."""
        init(self.root, with_dvc=False)
        self.build(1)
        self.release("1.0.0")

    @abstractmethod
    def do(self) -> None:
        """Do it, here and now."""

    def again(self) -> None:
        """Do it again, as somebody would whom it failed."""
        self.do()

    def reset(self) -> None:
        """Put `root` back to what it starts from."""
        shutil.rmtree(self.root)
        shutil.copytree(self.start, self.root, symlinks=True)

    def seen(self) -> dict[str, bytes]:
        """The files that people see, without the times in them."""
        return {
            path: _CREATED.sub(b"", data)
            for path, data in tree(self.root).items()
            if path.split("/")[0] in _VISIBLE and not is_temporary(path)
        }

    def expect_unharmed(self, acknowledged: Sequence[str] = ()) -> None:
        """All that was acknowledged verifies; what was not is whole, or nobody sees it.

        Args:
            acknowledged: releases, beside those from before.
        """
        registry = open_registry(self.root)
        assert [each.problem for each in list_datasets(registry)] in ([], [""])
        versions = {str(version) for version in registry.versions("digits")}
        assert {*self.released, *acknowledged} <= versions <= {*self.released, *self.adds}
        for version in versions:
            resolved = resolve(registry, f"digits@{version}")
            assert resolved.schema is not None
            assert self.clean(f"digits@{version}"), version
        if registry.is_built("digits"):
            assert self.clean("digits")
        now = self.seen()
        for state in (self.before, self.after):
            kept = {path for path in state if path.startswith(("data/", "registry/"))}
            strange = {path for path in now if path.startswith(("data/", "registry/"))} - kept
            if not strange:
                break
        else:
            raise AssertionError(f"files of nobody: {sorted(strange)}")

    def expect_done(self, said: str = "") -> None:
        """It left what it leaves where nothing disturbs it.

        Args:
            said: a text for what was refused. What it leaves may lack what it says that it does.
        """
        assert self.seen() == self.after
        self.expect_unharmed(self.adds)

    def build(self, seed: int) -> None:
        raw, policy = str(self.folder / f"raw{seed}"), ShardPolicy(shards=2)
        request = BuildRequest(name="digits", source="mnist", raw=raw, policy=policy)
        build(open_registry(self.root), request)

    def release(self, version: str) -> None:
        release(open_registry(self.root), ReleaseRequest(name="digits", version=version))

    def clean(self, reference: str) -> bool:
        options = CheckOptions(only=("crc", "manifest"), fail_on=FailOn.WARNING)
        (report,) = check([reference], registry=str(self.root), options=options)
        return report.status == "pass"


class Build(Deed):
    """Build from other raw data, in the place of the released build."""

    def do(self) -> None:
        self.build(2)


class First(Deed):
    """The first build and release of a dataset."""

    released = ()
    adds = ("1.0.0",)

    def prepare(self) -> None:
        init(self.root, with_dvc=False)

    def do(self) -> None:
        self.build(1)
        self.release("1.0.0")


class Release(Deed):
    """Release a build beside an older release."""

    adds = ("2.0.0",)

    def prepare(self) -> None:
        super().prepare()
        self.build(2)

    def do(self) -> None:
        self.release("2.0.0")


class Yank(Deed):
    """Withdraw a release that was withdrawn before, for another reason."""

    def prepare(self) -> None:
        super().prepare()
        self.withdraw("old")

    def do(self) -> None:
        self.withdraw("new")

    def withdraw(self, reason: str) -> None:
        tag(open_registry(self.root), TagRequest(reference="digits@1.0.0", yank=reason))

    def expect_unharmed(self, acknowledged: Sequence[str] = ()) -> None:
        super().expect_unharmed(acknowledged)
        yanks = resolve(open_registry(self.root), "digits@1.0.0").yanks
        assert [yank.reason for yank in yanks] in (["old"], ["old", "new"])


class Gc(Deed):
    """Remove what killed commands left, and an index that no manifest names."""

    released = ("1.0.0", "2.0.0")

    def prepare(self) -> None:
        super().prepare()
        self.build(2)
        self.release("2.0.0")
        for name in ("release-digits-3.0.0-ab/manifest.json", "digits/0123/build/x.tfrecord"):
            self.litter(f"stage/{name}")
        self.litter("cache/index/ab/cdef")

    def litter(self, name: str) -> None:
        path = self.root / ".tfrecreg" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"what nobody refers to")

    def do(self) -> None:
        gc(open_registry(self.root), apply=True)

    def expect_unharmed(self, acknowledged: Sequence[str] = ()) -> None:
        super().expect_unharmed(acknowledged)
        assert self.seen() == self.before
        kept = tree(self.start / ".tfrecreg/cache/index")
        kept.pop("ab/cdef")
        assert kept.items() <= tree(self.root / ".tfrecreg/cache/index").items()

    def expect_done(self, said: str = "") -> None:
        super().expect_done(said)
        assert gc(open_registry(self.root)) == []


class GcDvc(Gc):
    """Remove from DVC's cache a build that nothing refers to."""

    released = ("1.0.0",)

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


class Salvage(Deed):
    """Salvage a damaged shard into a folder beside it."""

    released = ()

    def prepare(self) -> None:
        made = make([filler(number) for number in range(20)])
        (self.root / "in").mkdir(parents=True)
        flip(put(self.root / "in", made.data, made.index), 550)

    def do(self) -> None:
        salvage([str(self.root / "in/x.tfrecord")], self.root / "out")

    def again(self) -> None:
        if (self.root / "out").exists():
            shutil.rmtree(self.root / "out")  # it is there whole, and a salvage never overwrites
        self.do()

    def expect_done(self, said: str = "") -> None:
        report = (self.root / "out/salvage.json").read_text()
        if not said or said not in report:  # without the index a salvage knows less, and says so
            super().expect_done()

    def expect_unharmed(self, acknowledged: Sequence[str] = ()) -> None:
        assert self.seen() in (self.before, self.after)


class Tag(Deed):
    """Tag a release that is committed to git, whose bytes DVC keeps."""

    def prepare(self) -> None:
        start(self.root)
        init(self.root)
        super().prepare()
        commit(self.root, "Release digits@1.0.0")

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


DEEDS: dict[str, Callable[[Path], Deed]] = {
    "build": Build,
    "first": First,
    "release": Release,
    "yank": Yank,
    "gc": Gc,
    "gc-dvc": GcDvc,
    "salvage": Salvage,
    "tag": Tag,
}


@pytest.fixture(scope="module")
def deed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Deed:
    """The deed that a test names, by indirect parametrisation."""
    if request.param in ("tag", "gc-dvc"):
        pytest.importorskip("dvc", reason="the extra `dvc` is not installed")
    return DEEDS[request.param](tmp_path_factory.mktemp(request.param))

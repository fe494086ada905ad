"""All deeds by name, and a fixture."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import pytest
from deed_support import Deed
from foreign_support import write_set
from git_support import commit, git, start
from kept_support import expect_kept, expect_nothing_left
from publish_support import write_raw
from registry_support import write
from salvage_support import filler, make, put
from system_support import NUMBERS
from tests_support import flip, put_back, tree

import tfrecreg as tr

__all__ = ["DEEDS", "WITH_DVC", "Deed", "Push", "ReleaseDvc", "deed"]


class Build(Deed):
    """Build from other raw data, in the place of the released build."""

    command = "-C {root} build digits --source mnist --raw {folder}/raw2 --shards 2 -j 1"

    def do(self) -> None:
        self.build(2)

    def then(self) -> None:
        self.release("2.0.0")
        super().then()


class Growth(Build):
    """Build from the release and more images: some shards stay, others do not, and one is new."""

    command = "-C {root} build digits --source mnist --raw {folder}/more -j 1"

    def prepare(self) -> None:
        write_raw(self.folder / "few", range(6))
        write_raw(self.folder / "more", [*range(5), *range(10, 16)])
        tr.init(self.root, with_dvc=False)
        self._build("few")
        self.release("1.0.0")

    def do(self) -> None:
        build = self._build("more")
        assert build.result.growth is not None
        assert not any(f"data/digits/{each.path}" in self.before for each in build.manifest.shards)

    def _build(self, raw: str) -> Any:
        return self.registry["digits"].build(source="mnist", raw=self.folder / raw)


class First(Deed):
    """The first build and release of a dataset."""

    released = ()
    adds = ("1.0.0",)

    def prepare(self) -> None:
        tr.init(self.root, with_dvc=False)

    def do(self) -> None:
        self.build(1)
        self.release("1.0.0")


class Release(Deed):
    """Release a build beside an older release."""

    adds = ("2.0.0",)
    command = "-C {root} release digits --version 2.0.0 -j 1"

    def prepare(self) -> None:
        super().prepare()
        self.build(2)

    def do(self) -> None:
        self.release("2.0.0")


class Yank(Deed):
    """Yank a release that was yanked before, for another reason."""

    def prepare(self) -> None:
        super().prepare()
        self.registry["digits@1.0.0"].yank("old")

    def do(self) -> None:
        self.registry["digits@1.0.0"].yank("new")

    def expect_unharmed(self, acknowledged: Sequence[str] = ()) -> None:
        super().expect_unharmed(acknowledged)
        yanks = self.registry["digits@1.0.0"].yanks
        assert [yank.reason for yank in yanks] in (["old"], ["old", "new"])


class Gc(Deed):
    """Remove leftovers of killed commands, and an unreferenced index."""

    released: tuple[str, ...] = ("1.0.0", "2.0.0")

    def prepare(self) -> None:
        super().prepare()
        self.build(2)
        self.release("2.0.0")
        for name in ("release-digits-3.0.0-ab/manifest.json", "digits/0123/build/x.tfrecord"):
            self.litter(f"stage/{name}")
        self.litter("cache/index/ab/cdef")

    def litter(self, name: str) -> None:
        write(self.root / ".tfrecreg" / name, b"what nobody refers to")

    def do(self) -> None:
        self.collect()

    def expect_unharmed(self, acknowledged: Sequence[str] = ()) -> None:
        super().expect_unharmed(acknowledged)
        assert self.seen() == self.before
        kept = tree(self.start / ".tfrecreg/cache/index")
        kept.pop("ab/cdef")
        assert kept.items() <= tree(self.root / ".tfrecreg/cache/index").items()

    def expect_done(self) -> None:
        super().expect_done()
        assert self.run(self.registry.gc) == []


class Repair(Build):
    """Make a damaged shard of the build again, which no release has."""

    def prepare(self) -> None:
        super().prepare()
        self.build(2)
        flip(self.root / "data/digits/digits-train.tfrecord-00001-of-00002", 100)

    def do(self) -> None:
        result = self.registry["digits"].built.repair(raw=self.folder / "raw2")
        assert len(result.shards) <= 2  # a shard that cannot be read is made again as well

    def expect_unharmed(self, acknowledged: Sequence[str] = ()) -> None:
        self.expect_verified()
        assert self.seen() in (self.before, self.after)


class Adopt(Deed):
    """Adopt more files of another tool, in the place of the release."""

    def __init__(self, folder: Path, how: Literal["copy", "link", "in-place"]) -> None:
        self.how = how
        self.foreign = folder / ("work/data/digits" if how == "in-place" else "foreign")
        super().__init__(folder)

    def prepare(self) -> None:
        tr.init(self.root, with_dvc=False)
        write_set(self.foreign, "train", 5, 2)
        self.do()
        self.release("1.0.0")
        write_set(self.foreign, "test", 2, 1, first=50)
        self.given = tree(self.folder / "foreign")

    def do(self) -> None:
        paths = [] if self.how == "in-place" else [self.foreign]
        self.registry["digits"].adopt(*paths, how=self.how)

    def then(self) -> None:
        self.release("2.0.0")

    def expect_unharmed(self, acknowledged: Sequence[str] = ()) -> None:
        """After an interruption of an adoption in place, the folder has its files, and `check`
        reports an outdated manifest.
        """
        if self.how != "in-place":
            super().expect_unharmed(acknowledged)
            return
        expect_kept(self.root, self.folder / "remote")
        found = self.seen()
        shards = {path: data for path, data in self.before.items() if path.endswith(".tfrecord")}
        assert {path: found.get(path) for path in shards} == shards
        known = {*self.before, *self.after}
        assert not [path for path in found if path.startswith("data/") and path not in known]

    def expect_done(self) -> None:
        super().expect_done()
        self.expect_verified()
        assert self.clean("digits")

    def expect_settled(self) -> None:
        super().expect_settled()
        assert tree(self.folder / "foreign") == self.given  # it was only read


class _Outside(Deed):
    """Make the folder `out`, which no registry owns."""

    @abstractmethod
    def do(self, folder: str = "out") -> None:
        """Make it, or another folder."""

    def again(self) -> None:
        if (self.root / "out").exists():
            with pytest.raises(tr.UsageError, match="is not empty"):
                self.do()
            shutil.rmtree(self.root / "out")
        self.do()
        expect_nothing_left(self.root)

    def then(self) -> None:
        self.do("another")

    def expect_unharmed(self, acknowledged: Sequence[str] = ()) -> None:
        assert self.seen() in (self.before, self.after)


class Salvage(_Outside):
    """Salvage a damaged shard into a folder beside it."""

    released = ()
    command = "salvage {root}/in/x.tfrecord --output {root}/out"

    def prepare(self) -> None:
        made = make([filler(number) for number in range(20)])
        (self.root / "in").mkdir(parents=True)
        flip(put(self.root / "in", made.data, made.index), 550)

    def do(self, folder: str = "out") -> None:
        tr.salvage(self.root / "in/x.tfrecord", self.root / folder)

    def seen(self) -> dict[str, bytes]:
        # Without the index a salvage has fewer results, and says why.
        found = super().seen()
        report = found.get("out/salvage.json", b"").decode()
        says_why = any(os.strerror(number) in report for number in NUMBERS)
        return self.after if says_why else found

    def expect_settled(self) -> None:
        expect_nothing_left(self.root)


class Export(_Outside):
    """Export a release into a folder beside the registry's."""

    def __init__(self, folder: Path, to: Literal["arrayrecord", "parquet", "tfds"]) -> None:
        self.to = to
        super().__init__(folder)

    def do(self, folder: str = "out") -> None:
        self.registry["digits@1.0.0"].export(self.root / folder, to=self.to)


class _WithDvc(Deed):
    """Begins with a release that is committed, whose bytes DVC keeps, and a remote without them."""

    with_dvc = True

    def prepare(self) -> None:
        start(self.root)
        tr.init(self.root)
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

    @contextlib.contextmanager
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

    def prepare(self) -> None:
        start(self.root)
        tr.init(self.root)
        shutil.copytree(self.folder / "raw1", self.root / "raw")
        (self.root / ".gitignore").write_text("/raw/\n")
        config = 'source = "mnist"\nraw = "raw"\nshards = 2\n'
        write(self.root / "datasets/digits.toml", config)
        self.registry.pipeline("digits")
        self.reproduce()
        commit(self.root, "Build digits")

    def reproduce(self) -> None:
        with self.dvc() as repo:
            repo.reproduce(["build-digits"])

    def take_raw(self, seed: int) -> None:
        shutil.rmtree(self.root / "raw")
        shutil.copytree(self.folder / f"raw{seed}", self.root / "raw")

    def do(self) -> None:
        self.release("1.0.0")

    def then(self) -> None:
        self.take_raw(3)
        self.reproduce()
        self.release("9.0.0")


class DvcRepro(ReleaseStage):
    """Have DVC make a build again, after another build was released."""

    released = ("1.0.0",)
    adds = ()

    def prepare(self) -> None:
        super().prepare()
        self.release("1.0.0")
        commit(self.root, "Release digits@1.0.0")
        self.take_raw(2)

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


class Push(_WithDvc):
    """Send a release to a remote."""

    def do(self) -> None:
        self.registry.push()


class Pull(_WithDvc):
    """Bring a release's bytes to a clone."""

    def prepare(self) -> None:
        super().prepare()
        self.registry.push()
        shutil.copytree(self.folder / "remote", self.folder / "remote-at-start")
        self.root.rename(self.folder / "origin")
        git(self.folder, "clone", "--quiet", "origin", "work")

    def do(self) -> None:
        self.registry["digits@1.0.0"].pull()

    def expect_done(self) -> None:
        super().expect_done()
        assert self.clean("digits@1.0.0")

    def expect_beside_gc(self) -> None:
        self.expect_verified()  # the copy may be gone again: the remote has it as well


class GcDvc(Gc):
    """Remove from DVC's cache a build that nothing refers to."""

    released = ("1.0.0",)
    with_dvc = True

    def prepare(self) -> None:
        tr.init(self.root)
        self.build(1)
        self.release("1.0.0")
        kept = shutil.copytree(self.root, self.folder / "kept", symlinks=True)
        self.build(2)
        self.release("2.0.0")
        shutil.copytree(self.root / ".dvc/cache", kept / ".dvc/cache", dirs_exist_ok=True)
        put_back(kept, self.root)
        self.litter("cache/index/ab/cdef")


DEEDS: dict[str, Callable[[Path], Deed]] = {
    "build": Build,
    "growth": Growth,
    "first": First,
    "release": Release,
    "adopt-copy": partial(Adopt, how="copy"),
    "adopt-link": partial(Adopt, how="link"),
    "adopt-in-place": partial(Adopt, how="in-place"),
    "repair": Repair,
    "yank": Yank,
    "gc": Gc,
    "salvage": Salvage,
    "export-tfds": partial(Export, to="tfds"),
    "export-arrayrecord": partial(Export, to="arrayrecord"),
    "export-parquet": partial(Export, to="parquet"),
}
WITH_DVC: dict[str, Callable[[Path], Deed]] = {
    "release-dvc": ReleaseDvc,
    "release-stage": ReleaseStage,
    "pull": Pull,
    "push": Push,
    "gc-dvc": GcDvc,
    "dvc-add": DvcAdd,
    "dvc-repro": DvcRepro,
}
_LIBRARIES = {
    **dict.fromkeys(WITH_DVC, "dvc"),
    "export-arrayrecord": "array_record",
    "export-parquet": "pyarrow",
}


@pytest.fixture(scope="module")
def deed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Deed:
    """The deed that a test names, by indirect parametrisation."""
    library = _LIBRARIES.get(request.param, "json")
    if find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    return (DEEDS | WITH_DVC)[request.param](tmp_path_factory.mktemp(request.param))

"""Deeds in a registry without DVC."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from deed_support import Deed, write_images
from foreign_support import write_set
from kept_support import expect_kept
from tests_support import flip, tree

from tfrecreg.builtin.adopt.request import AdoptRequest
from tfrecreg.builtin.adopt.run import adopt
from tfrecreg.builtin.dvc.garbage import gc
from tfrecreg.builtin.python_data.build import build
from tfrecreg.builtin.releases.tag import yank
from tfrecreg.builtin.repair.run import repair
from tfrecreg.core.build.request import BuildRequest
from tfrecreg.core.registry.init import init
from tfrecreg.core.registry.lookup import resolve
from tfrecreg.core.registry.registry import open_registry


class Build(Deed):
    """Build from other raw data, in the place of the released build."""

    def do(self) -> None:
        self.build(2)

    def command(self) -> list[str]:
        raw = str(self.folder / "raw2")
        return ["build", "digits", "--source", "mnist", "--raw", raw, "--shards", "2", "-j", "1"]

    def then(self) -> None:
        self.release("2.0.0")
        super().then()


class Growth(Deed):
    """Build from the release and more images: some shards stay, others do not, and one is new."""

    def prepare(self) -> None:
        write_images(self.folder / "few", range(6))
        write_images(self.folder / "more", [0, 1, 2, 3, 4, *range(10, 16)])
        init(self.root, with_dvc=False)
        request = BuildRequest(name="digits", source="mnist", raw=str(self.folder / "few"))
        build(open_registry(self.root), request)
        self.release("1.0.0")

    def do(self) -> None:
        request = BuildRequest(name="digits", source="mnist", raw=str(self.folder / "more"))
        result = build(open_registry(self.root), request)
        assert result.growth is not None
        shards = {name for name in self.before if "tfrecord-" in name and "index" not in name}
        assert not any(f"data/digits/{each.path}" in shards for each in result.manifest.shards)

    def command(self) -> list[str]:
        raw = str(self.folder / "more")
        return ["build", "digits", "--source", "mnist", "--raw", raw, "-j", "1"]

    def then(self) -> None:
        self.release("2.0.0")
        super().then()


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

    def command(self) -> list[str]:
        return ["release", "digits", "--version", "2.0.0", "-j", "1"]


class Yank(Deed):
    """Yank a release that was yanked before, for another reason."""

    def prepare(self) -> None:
        super().prepare()
        self.withdraw("old")

    def do(self) -> None:
        self.withdraw("new")

    def command(self) -> list[str]:
        return ["yank", "digits@1.0.0", "--reason", "new"]

    def withdraw(self, reason: str) -> None:
        yank(open_registry(self.root), "digits@1.0.0", reason)

    def expect_unharmed(self, acknowledged: Sequence[str] = ()) -> None:
        super().expect_unharmed(acknowledged)
        yanks = resolve(open_registry(self.root), "digits@1.0.0").yanks
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
        path = self.root / ".tfrecreg" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"what nobody refers to")

    def do(self) -> None:
        gc(open_registry(self.root), apply=True)

    def command(self) -> list[str]:
        return ["gc", "--apply"]

    def expect_unharmed(self, acknowledged: Sequence[str] = ()) -> None:
        super().expect_unharmed(acknowledged)
        assert self.seen() == self.before
        kept = tree(self.start / ".tfrecreg/cache/index")
        kept.pop("ab/cdef")
        assert kept.items() <= tree(self.root / ".tfrecreg/cache/index").items()

    def expect_done(self, said: str = "") -> None:
        super().expect_done(said)

        def again() -> None:
            assert gc(open_registry(self.root)) == []

        self.run(again)


class Repair(Deed):
    """Make a damaged shard of the build again, which no release has."""

    def prepare(self) -> None:
        super().prepare()
        self.build(2)
        flip(self.root / "data/digits/digits-train.tfrecord-00001-of-00002", 100)

    def do(self) -> None:
        raw = str(self.folder / "raw2")
        result = repair(open_registry(self.root), "digits", raw=raw)
        assert len(result.shards) <= 2  # a shard that cannot be read is made again as well

    def command(self) -> list[str]:
        raw = str(self.folder / "raw2")
        return ["repair", "digits", "--raw", raw, "-j", "1"]

    def expect_unharmed(self, acknowledged: Sequence[str] = ()) -> None:
        self.expect_verified()
        assert self.seen() in (self.before, self.after)

    def then(self) -> None:
        self.release("2.0.0")
        super().then()


class _Adopt(Deed):
    """Adopt more files of another tool, in the place of the release."""

    how: Literal["copy", "link", "in-place"]

    @property
    def places(self) -> tuple[Path, ...]:
        return (self.root, self.folder / "foreign")

    @property
    def foreign(self) -> Path:
        in_place = self.how == "in-place"
        return self.root / "data/digits" if in_place else self.folder / "foreign"

    def prepare(self) -> None:
        init(self.root, with_dvc=False)
        write_set(self.foreign, "train", 5, 2)
        self.do()
        self.release("1.0.0")
        write_set(self.foreign, "test", 2, 1, first=50)
        self.given = self.theirs()

    def do(self) -> None:
        paths = () if self.how == "in-place" else (str(self.foreign),)
        request = AdoptRequest(name="digits", paths=paths, how=self.how)
        adopt(open_registry(self.root), request)

    def command(self) -> list[str]:
        return ["adopt", "digits", str(self.foreign), "-j", "1"]

    def then(self) -> None:
        self.release("2.0.0")

    def expect_settled(self) -> None:
        super().expect_settled()
        assert self.theirs() == self.given  # it was only read

    def theirs(self) -> dict[str, bytes]:
        """What the other tool wrote."""
        return {path.name: path.read_bytes() for path in self.foreign.glob("*.tfrecord")}


class AdoptCopy(_Adopt):
    __doc__ = _Adopt.__doc__
    how = "copy"


class AdoptLink(_Adopt):
    __doc__ = _Adopt.__doc__
    how = "link"


class AdoptInPlace(_Adopt):
    """Adopt files that lie in the build's folder, beside those that were released."""

    how = "in-place"

    def expect_unharmed(self, acknowledged: Sequence[str] = ()) -> None:
        """After an interruption the folder has its files; `check` reports an outdated manifest."""
        expect_kept(self.root)
        found = self.seen()
        shards = {path: data for path, data in self.before.items() if path.endswith(".tfrecord")}
        assert {path: found.get(path) for path in shards} == shards
        known = {*self.before, *self.after}
        assert not [path for path in found if path.startswith("data/") and path not in known]

    def expect_done(self, said: str = "") -> None:
        assert self.seen() == self.after
        self.expect_verified()
        assert self.clean("digits")

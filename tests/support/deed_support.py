"""A deed: a command to interrupt, its start, and what must hold afterwards.

A deed runs in a folder that :meth:`Deed.reset` restores. After any interruption
:meth:`Deed.expect_unharmed` holds. Then the deed succeeds when repeated, and so does the next
command; and after `gc` no leftovers exist.
"""

from __future__ import annotations

import random
import re
import shutil
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from blake3 import blake3
from child_support import apart, preload
from kept_support import expect_kept, expect_nothing_left
from tests_support import entries, put_back, tree

from tfrecreg.builtin.dvc.garbage import gc
from tfrecreg.builtin.python_data.build import build
from tfrecreg.builtin.releases.release import ReleaseRequest, release
from tfrecreg.cli.digits import write_digits
from tfrecreg.core.build.request import BuildRequest
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.run import check
from tfrecreg.core.registry.init import init
from tfrecreg.core.registry.listing import list_datasets
from tfrecreg.core.registry.lookup import resolve
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.storage.writer import is_temporary
from tfrecreg.core.values.config import FailOn
from tfrecreg.core.values.shards import ShardPolicy

_VISIBLE = ("data", "versions", "registry", "schemas", "datasets", "tfrecreg.toml", "in", "out")
"""The visible files of the folder: not the state of this machine, and nothing hidden."""
_CREATED = re.compile(rb'"created":"[^"]*"')
_RANDOM = re.compile(r"[0-9a-f]{16}(?=\.tmp)")
_SHARDS = 2


class Deed(ABC):
    """Something that is done to a registry with the dataset `digits`, or beside it.

    Args:
        folder: to fill: the registry, or the data to salvage, is in its folder `work`.
    """

    released: tuple[str, ...] = ("1.0.0",)
    """The releases that are acknowledged before it begins."""
    adds: tuple[str, ...] = ()
    """Those that it makes."""
    shares = False
    """Whether all its releases are kept by DVC, and committed after it."""
    with_dvc = False
    """Whether DVC is used: then all runs in processes of their own, because DVC keeps its state."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.root = folder, folder / "work"
        self._judged: set[tuple[object, ...]] = set()
        for seed in (1, 2, 3):
            raw = LocalStorage(folder / f"raw{seed}")
            write_digits(raw, train=6, test=3, seed=seed)
        self._run_first(self.prepare)
        self.start = shutil.copytree(self.root, folder / "start", symlinks=True)
        self._began = max(path.lstat().st_mtime_ns for path in (folder, *folder.rglob("*")))
        self.before = self.seen()
        self._run_first(self.do)
        self.after = self.seen()
        self.expect_unharmed(self.adds)
        self.reset()

    @property
    def stores(self) -> tuple[Path, ...]:
        """Remotes of DVC."""
        return (self.folder / "remote",)

    @property
    def places(self) -> tuple[Path, ...]:
        """The folders that it changes."""
        return (self.root, self.folder / "remote")

    def prepare(self) -> None:
        """Make its start, in `root`."""
        init(self.root, with_dvc=False)
        self.build(1)
        self.release("1.0.0")

    @abstractmethod
    def do(self) -> None:
        """Do it in this process."""

    def command(self) -> list[str]:
        """The arguments of ``tfrecreg`` in `root`.

        Some are several commands, or none of ours: they are done in Python only, and this is never
        asked of them.
        """
        raise NotImplementedError(f"{type(self).__name__} is not one command of tfrecreg")

    def arguments(self) -> list[str]:
        """The arguments of ``tfrecreg`` in any folder."""
        return ["-C", str(self.root), *self.command()]

    def again(self) -> None:
        """Repeat it, as a user would after a failure."""
        self.do()

    def then(self) -> None:
        """Do the next command."""
        self.build(3)
        self.release("9.0.0")

    def run(self, work: Callable[[], object]) -> None:
        """Do some work, which succeeds."""
        if self.with_dvc:
            apart(work)
        else:
            work()

    def _run_first(self, work: Callable[[], object]) -> None:
        preload(work) if self.with_dvc else work()

    def reset(self) -> None:
        """Restore `root` to its start."""
        put_back(self.start, self.root)

    def seen(self) -> dict[str, bytes]:
        """The visible files, without the times in them."""
        return {
            path: _CREATED.sub(b"", data)
            for path, data in tree(self.root).items()
            if path.split("/")[0] in _VISIBLE and not is_temporary(path)
        }

    def expect_recovered(self, acknowledged: Sequence[str] = (), *, further: bool = True) -> None:
        """No harm was done; it succeeds now, and so does the next command; then no leftovers exist.

        Args:
            acknowledged: releases, beside those from before.
            further: whether to do the next command, and to search for leftovers.
        """

        def recovered() -> None:
            self.expect_unharmed(acknowledged)
            self.run(self.again)
            self.expect_done()
            if further:
                self.run(self.then)
                self.expect_settled()

        self.judge_once(recovered, "recovered", *acknowledged, further)

    def judge_once(self, judge: Callable[[], None], *question: object) -> None:
        """Judge the folder, unless one that is the same was judged so before.

        Many interruptions leave the same files, and nothing else of them reaches those who come
        later: they were killed, or ended. With DVC all are judged: it keeps more, elsewhere.

        Args:
            judge: raises an error where something is wrong.
            question: identifies the judge: judges with the same question do the same.
        """
        asked = (*question, "" if self.with_dvc else self._left())
        if asked not in self._judged:
            judge()
            if not self.with_dvc:
                self._judged.add(asked)

    def _left(self) -> str:
        """A digest of the contents of the folder.

        Times and random parts of names of files made since its start do not count.
        """
        found = []
        for path, entry in entries(self.folder).items():
            if path.split("/")[0] != self.start.name:
                name, data = _RANDOM.sub("", path), _CREATED.sub(b"", entry.data)
                modified = entry.modified if entry.modified <= self._began else 0
                found.append((name, entry._replace(modified=modified, data=data)))
        return blake3(repr(sorted(found)).encode()).hexdigest()

    def expect_unharmed(self, acknowledged: Sequence[str] = ()) -> None:
        """All acknowledged data verify; other data are complete or invisible.

        Args:
            acknowledged: releases, beside those from before.
        """
        registry = open_registry(self.root)
        assert [each.problem for each in list_datasets(registry)] in ([], [""])
        versions = {str(version) for version in registry.dataset("digits").versions}
        assert {*self.released, *acknowledged} <= versions <= {*self.released, *self.adds}
        self.expect_verified()
        if registry.dataset("digits").is_built():
            assert self.clean("digits")
            assert registry.dataset("digits").schema_text() is not None
        now = self.seen()
        for state in (self.before, self.after):
            kept = {path for path in state if path.startswith(("data/", "registry/"))}
            strange = {path for path in now if path.startswith(("data/", "registry/"))} - kept
            if not strange:
                break
        else:
            raise AssertionError(f"files of nobody: {sorted(strange)}")

    def expect_verified(self) -> None:
        """Every release verifies, where its bytes are."""
        expect_kept(self.root, *self.stores)
        registry = open_registry(self.root)
        for version in registry.dataset("digits").versions:
            resolved = resolve(registry, f"digits@{version}")
            assert resolved.schema is not None
            if resolved.folder is not None:
                assert self.clean(resolved.name), version

    def expect_done(self, said: str = "") -> None:
        """The result is that of an undisturbed run.

        Args:
            said: the text of a refusal. The result may lack what the text names.
        """
        assert self.seen() == self.after
        self.expect_unharmed(self.adds)

    def expect_beside_gc(self) -> None:
        """The result is that of an undisturbed run, although a `gc` ran meanwhile."""
        self.expect_done()

    def expect_settled(self) -> None:
        """After `gc`, interrupted commands have no leftovers."""
        self.run(self.collect)
        expect_nothing_left(self.root)
        self.expect_verified()
        assert self.clean("digits")

    def collect(self) -> None:
        gc(open_registry(self.root), apply=True)

    def build(self, seed: int) -> None:
        raw, policy = str(self.folder / f"raw{seed}"), ShardPolicy(shards=_SHARDS)
        request = BuildRequest(name="digits", source="mnist", raw=raw, policy=policy)
        build(open_registry(self.root), request)

    def release(self, version: str) -> None:
        release(open_registry(self.root), ReleaseRequest(name="digits", version=version))

    def clean(self, reference: str, root: Path | None = None) -> bool:
        """Whether a build or a release verifies, here or in another registry."""
        options = CheckOptions(only=("crc", "manifest"), fail_on=FailOn.WARNING)
        (report,) = check([reference], registry=str(root or self.root), options=options)
        return report.status == "pass"


def write_images(folder: Path, numbers: Iterable[int]) -> None:
    """Raw data in MNIST's format, of images of noise, each by its number."""
    folder.mkdir(parents=True, exist_ok=True)
    images = [random.Random(number).randbytes(784) for number in numbers]
    pixels = struct.pack(">IIII", 0x803, len(images), 28, 28) + b"".join(images)
    labels = struct.pack(">II", 0x801, len(images)) + bytes(len(images))
    (folder / "train-images-idx3-ubyte").write_bytes(pixels)
    (folder / "train-labels-idx1-ubyte").write_bytes(labels)

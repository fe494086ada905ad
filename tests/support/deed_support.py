"""A deed: a command to interrupt, its start, and what must hold afterwards.

A deed runs in a folder that :meth:`Deed.reset` restores. After any interruption
:meth:`Deed.expect_unharmed` holds. Then the deed succeeds when it is repeated, and so does the next
command. After `gc` nothing of the interrupted command is left.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from blake3 import blake3
from child_support import apart, preload
from kept_support import expect_kept, expect_nothing_left
from tests_support import entries, put_back, tree

import tfrecreg as tr
from tfrecreg.cli.main import main
from tfrecreg.core.storage.writer import is_temporary
from tfrecreg.core.workers.interface import Engine
from tfrecreg.testing import write_digits

_VISIBLE = ("data", "versions", "registry", "schemas", "datasets", "tfrecreg.toml", "in", "out")
"""The visible files of the folder: not the state of this machine, and nothing hidden."""
_CREATED = re.compile(rb'"created":"[^"]*"')
_RANDOM = re.compile(r"[0-9a-f]{16}(?=\.tmp)")


class Deed(ABC):
    """Something that is done to a registry with the dataset `digits`, or beside it.

    Its files are in `folder`: the registry, or the data to salvage, in `work`; raw data in `raw1`,
    `raw2` and `raw3`; files to adopt in `foreign`; DVC's remote in `remote`.
    """

    released: tuple[str, ...] = ("1.0.0",)
    """The releases that are acknowledged before the deed begins."""
    adds: tuple[str, ...] = ()
    """The releases that the deed makes."""
    with_dvc = False
    """Whether DVC is used. Then all work runs in processes of their own: DVC keeps its state."""
    command = ""
    """The deed as arguments of ``tfrecreg``, if it is one command."""
    engine: Engine | None = None

    def __init__(self, folder: Path) -> None:
        self.folder, self.root = folder, folder / "work"
        self.places = (self.root, folder / "remote", folder / "foreign")
        self._judged: set[tuple[object, ...]] = set()
        for seed in (1, 2, 3):
            write_digits(folder / f"raw{seed}", train=6, test=3, seed=seed)
        run_first = preload if self.with_dvc else self.run
        run_first(self.prepare)
        self.start = shutil.copytree(self.root, folder / "start", symlinks=True)
        self._began = max(path.lstat().st_mtime_ns for path in (folder, *folder.rglob("*")))
        self.before = self.seen()
        run_first(self.do)
        self.after = self.seen()
        self.expect_unharmed(self.adds)
        self.reset()

    @property
    def registry(self) -> tr.Registry:
        return tr.open(self.root)

    def prepare(self) -> None:
        """Make the start of the deed, in `root`."""
        tr.init(self.root, with_dvc=False)
        self.build(1)
        self.release("1.0.0")

    @abstractmethod
    def do(self) -> None:
        """Do it in this process."""

    def at_command_line(self) -> dict[str, Any]:
        """Do it by the command; its exit code and its messages."""
        arguments = shlex.split(self.command.format(folder=self.folder, root=self.root))
        err = io.StringIO()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(err):
            code = main(arguments)
        return {"code": code, "err": err.getvalue()}

    def again(self) -> None:
        """Repeat it, as a user would after a failure."""
        self.do()

    def then(self) -> None:
        self.build(3)
        self.release("9.0.0")

    def run(self, work: Callable[[], object]) -> object:
        """Do some work, which succeeds."""
        return apart(work) if self.with_dvc else work()

    def reset(self) -> None:
        put_back(self.start, self.root)

    def seen(self) -> dict[str, bytes]:
        """The visible files, without the times in them."""
        return {
            path: _CREATED.sub(b"", data)
            for path, data in tree(self.root).items()
            if path.split("/")[0] in _VISIBLE and not is_temporary(path)
        }

    def expect_recovered(self, acknowledged: Sequence[str] = (), *, further: bool = True) -> None:
        """No harm was done, and the deed succeeds now.

        With `further`, so does the next command, and then nothing is left of the interrupted one.
        The releases in `acknowledged` are there, beside those from before.
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
        """Judge the folder, unless an equal folder was judged with the same question before.

        Many interruptions leave the same files, and nothing else of an ended process can affect
        later commands. With DVC every folder is judged, because DVC keeps more elsewhere.
        """
        asked = (*question, "" if self.with_dvc else self._left())
        if self.with_dvc or asked not in self._judged:
            judge()
            self._judged.add(asked)

    def _left(self) -> str:
        """A digest of the folder's contents, without times and random names of new files."""
        found = []
        for path, entry in entries(self.folder).items():
            if path.split("/")[0] != self.start.name:
                name, data = _RANDOM.sub("", path), _CREATED.sub(b"", entry.data)
                modified = entry.modified if entry.modified <= self._began else 0
                found.append((name, entry._replace(modified=modified, data=data)))
        return blake3(repr(sorted(found)).encode()).hexdigest()

    def expect_unharmed(self, acknowledged: Sequence[str] = ()) -> None:
        """All acknowledged data verify; all other data are complete or invisible."""
        assert [each.problem for each in self.registry.catalog()] in ([], [""])
        digits = self.registry["digits"]
        versions = {str(version) for version in digits.versions}
        assert {*self.released, *acknowledged} <= versions <= {*self.released, *self.adds}
        self.expect_verified()
        if digits.is_built():
            assert self.clean("digits")
            assert digits.schema is not None
        now, *states = (
            {path for path in files if path.startswith(("data/", "registry/"))}
            for files in (self.seen(), self.before, self.after)
        )
        assert any(now <= state for state in states), f"files of nobody: {sorted(now)}"

    def expect_verified(self) -> None:
        """Every release verifies, where its bytes are."""
        expect_kept(self.root, self.folder / "remote")
        for version in self.registry["digits"].versions:
            release = self.registry.find(f"digits@{version}")
            assert release.schema is not None
            assert release.folder is None or self.clean(release.name), version

    def expect_done(self) -> None:
        """The result is that of an undisturbed run."""
        assert self.seen() == self.after
        self.expect_unharmed(self.adds)

    def expect_beside_gc(self) -> None:
        """The result is that of an undisturbed run, although a `gc` ran meanwhile."""
        self.expect_done()

    def expect_settled(self) -> None:
        """After `gc`, nothing is left of interrupted commands."""
        self.run(self.collect)
        expect_nothing_left(self.root)
        self.expect_verified()
        assert self.clean("digits")

    def collect(self) -> None:
        self.registry.gc(apply=True)

    def build(self, seed: int) -> None:
        raw = self.folder / f"raw{seed}"
        self.registry["digits"].build(source="mnist", raw=raw, shards=2, engine=self.engine)

    def release(self, version: str) -> None:
        self.registry["digits"].release(version)

    def clean(self, reference: str, root: Path | None = None) -> bool:
        """Whether a build or a release verifies, here or in another registry."""
        only, registry = ("crc", "manifest"), root or self.root
        return tr.check(reference, registry=registry, only=only, fail_on="warning").status == "pass"

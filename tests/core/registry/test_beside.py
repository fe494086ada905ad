"""The first build of a dataset is complete or absent, with its schema and its configuration, after
any kill or refusal.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from foreign_support import write_set
from steps_support import Step, killed, steps_of
from system_support import Refusing, installed
from tests_support import put_back, tree

from tfrecreg.builtin.adopt.request import AdoptRequest
from tfrecreg.builtin.adopt.run import adopt
from tfrecreg.builtin.dvc.garbage import gc
from tfrecreg.builtin.python_data.build import build
from tfrecreg.cli.digits import write_digits
from tfrecreg.cli.main import main
from tfrecreg.core.build.request import BuildRequest
from tfrecreg.core.registry.init import init
from tfrecreg.core.registry.registry import Registry, open_registry
from tfrecreg.core.registry.transaction import transaction
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import StorageError

MANIFEST, SCHEMA, CONFIG = (
    "data/digits/manifest.json",
    "schemas/digits.pbtxt",
    "datasets/digits.toml",
)


class First:
    """A registry without datasets, and a command that publishes the first build."""

    def __init__(self, folder: Path, how: str) -> None:
        self.folder, self.root = folder, folder / "registry"
        init(self.root, with_dvc=False)
        if how.startswith("adopt"):
            in_place = how == "adopt-in-place"
            write_set(self.root / "data/digits" if in_place else folder / "in", "train", 5, 2)
        else:
            write_digits(LocalStorage(folder / "raw"), train=6, test=3, seed=1)
        self.do: Callable[[], object] = {
            "build": lambda: build(self.registry, self.request),
            "adopt-copy": lambda: adopt(
                self.registry, AdoptRequest(name="digits", paths=(str(folder / "in"),))
            ),
            "adopt-in-place": lambda: adopt(
                self.registry, AdoptRequest(name="digits", how="in-place")
            ),
        }[how]

    @property
    def registry(self) -> Registry:
        return open_registry(self.root)

    @property
    def request(self) -> BuildRequest:
        return BuildRequest(name="digits", source="mnist", raw=str(self.folder / "raw"))

    def there(self) -> set[str]:
        """The files that exist."""
        return {each for each in (MANIFEST, SCHEMA, CONFIG) if (self.root / each).exists()}


def publishing(step: Step) -> bool:
    """Whether a step publishes the schema or the folder."""
    ending = SCHEMA if step.kind == "link" else ("data/digits", MANIFEST)
    return step.kind in ("link", "rename", "exchange") and step.path.endswith(ending)


@pytest.mark.parametrize("how", ["build", "adopt-copy", "adopt-in-place"])
def test_killed_before_it_publishes_it_is_absent(how: str, tmp_path: Path) -> None:
    first = First(tmp_path, how)
    start = shutil.copytree(first.root, tmp_path / "start", symlinks=True)
    steps = steps_of(first.do, [first.root], publishing)
    whole = first.there()
    assert whole >= {MANIFEST, SCHEMA}
    assert not [*first.root.glob(".tfrecreg/stage/*/beside.json")]
    assert len(steps) == 2
    for at in (1, 2):
        put_back(start, first.root)
        assert killed(first.do, [first.root], publishing, at).failure is None
        assert MANIFEST not in first.there(), steps[at - 1]
        assert main(["-C", str(first.root), "audit"]) == 0, steps[at - 1]
        with transaction(first.registry.dataset("digits")):
            assert first.there() == set(), steps[at - 1]
        first.do()
        assert first.there() == whole


@pytest.mark.parametrize("how", ["build", "adopt-copy", "adopt-in-place"])
@pytest.mark.parametrize(
    ("kind", "ending"), [("link", SCHEMA), ("rename", "data/digits"), ("rename", "beside.json")]
)
def test_refused_it_is_absent(tmp_path: Path, how: str, kind: str, ending: str) -> None:
    first = First(tmp_path, how)
    if how == "adopt-in-place" and kind == "rename":
        ending = "data/digits/index"
    with installed(Refusing(kind, ending)), pytest.raises(StorageError) as caught:
        first.do()
    assert os.strerror(errno.EIO) in caught.value.message
    assert first.there() == set()
    first.do()
    assert first.there() >= {MANIFEST, SCHEMA}


def test_what_somebody_wrote_meanwhile_stays(tmp_path: Path) -> None:
    first = First(tmp_path, "build")

    def exchanges(step: Step) -> bool:
        return step.kind in ("rename", "exchange") and step.path.endswith("data/digits")

    assert killed(first.do, [first.root], exchanges, 1).failure is None
    assert first.there() == {SCHEMA, CONFIG}
    text = (first.root / SCHEMA).read_text() + "# reviewed\n"
    (first.root / SCHEMA).write_text(text)
    gc(first.registry, apply=True)
    assert first.there() == {SCHEMA}
    assert (first.root / SCHEMA).read_text() == text
    assert not [path for path in tree(first.root / ".tfrecreg") if path.endswith("beside.json")]


def test_a_note_that_cannot_be_read_removes_nothing(tmp_path: Path) -> None:
    first = First(tmp_path, "build")
    first.do()
    note = first.root / ".tfrecreg/stage/digits/beside.json"
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text("{")
    with transaction(first.registry.dataset("digits")):
        assert not note.exists()
    assert first.there() == {MANIFEST, SCHEMA, CONFIG}

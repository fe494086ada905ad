"""Only the transaction changes what a registry publishes, and what DVC keeps of it."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from deeds_support import Deed
from deeds_support import deed as deed  # the fixture

from tfrecreg.core.registry import layout, transaction
from tfrecreg.core.storage.local import LocalStorage

_CHANGED: dict[str, Any] = {
    "link": lambda given: given[1:2],
    "rename_dir": lambda given: given[:2],
    "replace_dir": lambda given: given[:2],
}
"""Which of its arguments a method changes, where it is not the first one."""
CHANGING = ("create", "put_if_absent", "rename_dir", "replace_dir", "link", "remove")


@contextmanager
def watched(root: Path) -> Iterator[list[str]]:
    """Who changes something below `data/`, `registry/` or `versions/` of the registry at `root`,
    and is not called by the transaction.
    """
    published = tuple(
        f"{root}/{folder}/" for folder in (layout.BUILDS, layout.RELEASES, layout.VERSIONS)
    )
    strangers: list[str] = []
    originals = {name: getattr(LocalStorage, name) for name in CHANGING}

    def watching(name: str, original: Any) -> Any:
        @functools.wraps(original)
        def call(self: LocalStorage, *paths: str, **more: Any) -> Any:
            changed = _CHANGED.get(name, lambda given: given[:1])(paths)
            if any(f"{self.root}/{path}".startswith(published) for path in changed):
                frame = sys._getframe(1)
                while frame is not None and frame.f_code.co_filename != transaction.__file__:
                    frame = frame.f_back
                ignored = changed[-1].endswith(("/.gitignore", "/.dvcignore"))
                if frame is None and not ignored:
                    strangers.append(f"{name} {changed}")
            return original(self, *paths, **more)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name, original in originals.items():
            patch.setattr(LocalStorage, name, watching(name, original))
        yield strangers


@pytest.mark.parametrize(
    "deed",
    [
        *("growth", "release", "adopt-in-place", "repair", "yank", "gc"),
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("build", "first", "adopt-copy", "adopt-link", "pull", "release-dvc")
        ),
    ],
    indirect=True,
)
def test_whoever_changes_what_is_published_is_the_transaction(deed: Deed) -> None:
    deed.reset()
    with watched(deed.root) as strangers:
        deed.do()
    assert strangers == []


def test_a_stranger_is_seen(tmp_path: Path) -> None:
    with watched(tmp_path) as strangers:
        with LocalStorage(tmp_path).create("data/x/y") as writer:
            writer.write(b"")
        with LocalStorage(tmp_path / "data/x").create("z") as writer:
            writer.write(b"")
    assert len(strangers) == 2

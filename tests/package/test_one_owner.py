"""Only the transaction changes what a registry publishes, and what DVC keeps of it."""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from deeds_support import Deed
from deeds_support import deed as deed  # the fixture
from package_support import source_modules

from tfrecreg.core.registry import layout, transaction
from tfrecreg.core.storage.local import LocalStorage

OWNER = "tfrecreg.core.registry.transaction"
DVC = "tfrecreg.builtin.dvc.keeper"
"""Is asked by the transaction to keep a release."""
OUTSIDE = "tfrecreg.core.registry.lock"
"""Makes folders of the user's, which lie in no registry."""

CALLS = {
    "rename_dir": {OWNER, OUTSIDE},
    "replace_dir": {OWNER},
    "remove_abandoned": {OWNER},
    "keep": {OWNER, DVC},
    "remove_corrupt": {DVC},
    "remove_objects": {"tfrecreg.builtin.dvc.garbage"},
    "stage_folder": {OWNER},
}
"""Methods and functions, and who may call them."""

_CHANGED: dict[str, Any] = {
    "link": lambda given: given[1:2],
    "rename_dir": lambda given: given[:2],
    "replace_dir": lambda given: given[:2],
}
"""Which of its arguments a method changes, where it is not the first one."""
CHANGING = ("create", "put_if_absent", "rename_dir", "replace_dir", "link", "remove")


@cache
def calls(path: Path) -> tuple[tuple[str, str], ...]:
    """The names of the methods that a module calls, and what they are called on, as text."""
    return tuple(
        (node.func.attr, ast.unparse(node.func.value))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    )


@pytest.fixture(scope="module")
def modules() -> dict[str, Path]:
    dvc = (f"tfrecreg.builtin.dvc.{name}" for name in ("cache", "cloud", "dvc"))
    below = ("tfrecreg.core.storage", *dvc)
    return {name: path for name, path in source_modules().items() if not name.startswith(below)}


@pytest.mark.medium
@pytest.mark.parametrize("name", CALLS)
def test_what_publishes_is_called_by_its_owner_alone(modules: dict[str, Path], name: str) -> None:
    found = {
        module
        for module, path in modules.items()
        for what, on in calls(path)
        if what == name and (name != "keep" or on in ("tracker()", "dvc"))
    }
    assert found == CALLS[name]


@pytest.mark.medium
def test_no_operation_links_or_removes_in_the_registry_itself(modules: dict[str, Path]) -> None:
    found = {
        (module, what)
        for module, path in modules.items()
        for what, on in calls(path)
        if what in ("link", "remove") and on.endswith("registry.storage") and module != OWNER
    }
    assert found == set()


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

"""The digest of code that can change under its version: of which distributions, and of which files.

Each is a real distribution in a folder on `sys.path`.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tfrecreg.core.build.request import code_of_source
from tfrecreg.core.build.sources.guarded import GuardedSource
from tfrecreg.core.plugins.code_digest import code_of, digest_of_packages
from tfrecreg.core.plugins.guard import PluginId

Install = Callable[..., Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """``install({"direct_url.json": …}, entry="dolls")`` is the folder of a distribution."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def made(metadata: dict[str, str], *, entry: str = "fake_dolls.plugin") -> Path:
        info = tmp_path / "dolls-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: dolls\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[tfrecreg]\nmain = {entry}\n")
        for name, text in metadata.items():
            (info / name).write_text(text)
        package = tmp_path / "fake_dolls"
        (package / "inner").mkdir(parents=True)
        (package / "__init__.py").write_text("")
        (package / "plugin.py").write_text("SIZE = 1\n")
        (package / "inner/deep.py").write_text("DEPTH = 1\n")
        return tmp_path

    yield made
    for name in [each for each in sys.modules if each.startswith("fake_")]:
        del sys.modules[name]
    forget()


def forget() -> None:
    code_of.cache_clear()
    digest_of_packages.cache_clear()


def digest_now(*modules: str) -> str:
    forget()
    return code_of("dolls", *modules)


def installed_from(**origin: object) -> dict[str, str]:
    url = "file:///home/ada/dolls"
    return {"RECORD": "", "direct_url.json": json.dumps({"url": url, **origin})}


FIXED = {"an index": {"RECORD": ""}, "a wheel": installed_from(archive_info={})}
CHANGING = {
    "an editable folder": installed_from(dir_info={"editable": True}),
    "a folder": installed_from(dir_info={}),
    "git": installed_from(vcs_info={"vcs": "git", "commit_id": "1234567"}),
    "nowhere": {},
    "somewhere that cannot be read": {"RECORD": "", "direct_url.json": "{"},
}


@pytest.mark.parametrize("origin", FIXED)
def test_the_version_tells_the_code_of_what_was_installed_from(
    install: Install, origin: str
) -> None:
    install(FIXED[origin])
    assert digest_now() == ""


@pytest.mark.parametrize("origin", CHANGING)
def test_a_digest_tells_the_code_of_what_was_installed_from(install: Install, origin: str) -> None:
    folder = install(CHANGING[origin])
    before = digest_now()
    assert len(before) == 64
    (folder / "fake_dolls/plugin.py").write_text("SIZE = 2\n")
    assert code_of("dolls") == before, "once per process"
    assert digest_now() != before


CHANGES: dict[str, Callable[[Path], object]] = {
    "a module below": lambda package: (package / "inner/deep.py").write_text("DEPTH = 2\n"),
    "a new module": lambda package: (package / "more.py").write_text(""),
    "another name": lambda package: (package / "plugin.py").rename(package / "plug.py"),
    "a module that is gone": lambda package: (package / "inner/deep.py").unlink(),
    "data of the package": lambda package: (package / "classes.txt").write_text("doll\n"),
    "a compiled module": lambda package: (package / "fast.so").write_bytes(b"\x7fELF"),
    "a pipe": lambda package: os.mkfifo(package / "pipe.py"),
    "a link to nowhere": lambda package: (package / "gone.py").symlink_to("missing"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_file_of_the_package_counts(install: Install, change: str) -> None:
    folder = install({})
    before = digest_now()
    CHANGES[change](folder / "fake_dolls")
    assert digest_now() != before


def test_caches_and_hidden_files_do_not_count(install: Install) -> None:
    folder = install({})
    before = digest_now()
    for path in ("__pycache__/plugin.pyc", "old.pyc", ".plugin.py.swp", ".git/config"):
        file = folder / "fake_dolls" / path
        file.parent.mkdir(exist_ok=True)
        file.write_text("x")
    assert digest_now() == before


def test_the_module_of_a_class_counts_beside_the_entry_points(install: Install) -> None:
    folder = install({})
    (folder / "fake_house.py").write_text("ROOMS = 1\n")
    entries, both = digest_now(), digest_now("fake_house")
    assert entries != both
    (folder / "fake_house.py").write_text("ROOMS = 2\n")
    assert digest_now() == entries
    assert digest_now("fake_house") != both


def test_the_code_of_a_source_whose_version_tells_it_is_not_digested(install: Install) -> None:
    folder = install(FIXED["a wheel"])
    (folder / "fake_house.py").write_text("class House:\n    pass\n")
    house = importlib.import_module("fake_house").House()
    source = GuardedSource(house, PluginId("source", "dolls", "dolls", "1.0"))
    forget()
    here = code_of_source("dolls", source)
    assert "dolls" not in here  # its version tells it

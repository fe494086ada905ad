"""The examples in the docstrings of the library: each public name and verb has one, and they run.

They run in a folder with the registry `registry` and the raw data of its dataset `mnist` in
`raw/mnist`, with the names `tr`, the library, and `reg`, that registry.
"""

from __future__ import annotations

import doctest
import inspect
import os
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from git_support import commit, start

import tfrecreg as tr
from tfrecreg.cli.digits import write_digits
from tfrecreg.core.storage.local import LocalStorage

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL

HANDLES = (tr.Registry, tr.Dataset, tr.Build, tr.Release)
"""Their verbs are methods of `tfrecreg.library`; those that they inherit of readers are not."""

PRIVATE = {
    *("of", "located", "number", "registry", "dataset"),
    *("digests", "elements_or_none", "record_name", "with_features"),
}
"""Methods that the package itself calls."""

NEEDS = {
    "tensorflow": {"load", "Build.load", "Release.load"},
    "dvc": {
        "Registry.push",
        "Registry.pull",
        "Registry.gc",
        "Registry.pipeline",
        "Release.push",
        "Release.pull",
    },
}
"""Examples that need a library which may be missing."""

WITH_DVC = {*NEEDS["dvc"], "Release.tag", "Registry.audit"}
"""Examples that run in a registry with DVC, in git."""


def methods(kind: type) -> Iterator[tuple[str, Any]]:
    """The public functions of a class, by their names."""
    for name, member in inspect.getmembers(kind):
        if name.startswith("_") or name in PRIVATE:
            continue
        function = inspect.unwrap(getattr(member, "__func__", member))
        where = "tfrecreg.library." if kind in HANDLES else "tfrecreg."
        if inspect.isfunction(function) and function.__module__.startswith(where):
            yield name, function


def described() -> Iterator[tuple[str, Any]]:
    """Everything that has a docstring in the reference: public names, and methods of classes."""
    yield "tfrecreg", tr
    for name in tr.__all__:
        if name.startswith("__"):
            continue
        found = getattr(tr, name)
        yield name, found
        if inspect.isclass(found):
            for method, function in methods(found):
                yield f"{name}.{method}", function


DESCRIBED = dict(described())
EXAMPLES = {
    name: doctest.DocTestParser().get_doctest(inspect.getdoc(found) or "", {}, name, None, None)
    for found, name in {found: name for name, found in reversed(DESCRIBED.items())}.items()
    if ">>>" in (inspect.getdoc(found) or "")
}
"""Each once: a release has the verbs of a build."""


def has_example(name: str) -> bool:
    """Whether a name has an example, or the example of its class calls it."""
    kind, _, method = name.partition(".")
    of_class = inspect.getdoc(DESCRIBED[kind]) or ""
    own = ">>>" in (inspect.getdoc(DESCRIBED[name]) or "")
    return own or f".{method}(" in of_class.partition("Example:")[2]


def test_every_public_name_has_an_example() -> None:
    assert {name for name in DESCRIBED if not has_example(name)} == set()


def made(folder: Path, *, with_dvc: bool) -> Path:
    """A folder with raw data and a registry, whose dataset `mnist` is built and released."""
    write_digits(LocalStorage(folder / "raw/mnist"), train=200, test=60, seed=1)
    root = folder / "registry"
    if with_dvc:
        start(root)
    mnist = tr.init(root, with_dvc=with_dvc)["mnist"]
    if with_dvc:
        (root / ".dvc/config").write_text(
            "[core]\n    remote = store\n['remote \"store\"']\n    url = ../../store\n"
        )
    mnist.build(source="mnist", raw=folder / "raw/mnist", shards=2)
    mnist.release("1.0.0", note="first")
    if with_dvc:
        commit(root)
    return folder


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("examples"), with_dvc=False)


@pytest.fixture(scope="module")
def tracked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if find_spec("dvc") is None:
        pytest.skip("DVC is not installed")
    return made(tmp_path_factory.mktemp("tracked"), with_dvc=True)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_prints_what_it_shows(
    name: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for library, names in NEEDS.items():
        if name in names:
            pytest.importorskip(library)
    story: Path = request.getfixturevalue("tracked" if name in WITH_DVC else "plain")
    here = Path(shutil.copytree(story, tmp_path / "here", symlinks=True))
    monkeypatch.chdir(here)
    example = EXAMPLES[name]
    example.globs = {"tr": tr, "reg": tr.open("registry")}
    said: list[str] = []
    doctest.DocTestRunner(optionflags=FLAGS).run(example, out=said.append)
    assert not said, "".join(said)
    assert os.getcwd() == str(here)  # noqa: PTH109

"""Each module stands on its own, says what it is for, and is small."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from package_support import CHECKOUT, plain_environment, source_modules

MODULES = source_modules()
MAX_LINES = 650
ALONE = Path(__file__).with_name("import_alone.py")

THIRD_PARTY = (
    "blake3",
    "click",
    "google.protobuf.text_format",
    "google_crc32c",
    "msgspec",
    "numpy",
    "pluggy",
    "rich.console",
    "rich.progress",
    "tensorflow_metadata.proto.v0.schema_pb2",
    "tomlkit",
)
"""Packages of others that most of the time goes to."""


def import_alone(
    modules: Sequence[str], home: Path, *, path: Sequence[Path], before: Sequence[str] = ()
) -> dict[str, str]:
    """Each module that does not import alone, with what it said. See `import_alone.py`."""
    request = {"path": [str(each) for each in path], "modules": modules, "before": before}
    # Threads of a numerical library would make the fork one that Python warns of.
    environment = plain_environment(home, OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(ALONE)],
        input=json.dumps(request),
        env=environment,
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout)
    return found


ROOTS = (CHECKOUT, CHECKOUT / "plugins")


@pytest.mark.medium
def test_some_of_the_modules_import_alone_without_a_warning(tmp_path: Path) -> None:
    """With packages of others there already: a few seconds, where the test of all takes more."""
    sample = sorted({*sorted(MODULES)[::40], "tfrecreg", "tfrecreg.api", "tfrecreg.cli.main"})
    assert import_alone(sample, tmp_path, path=ROOTS, before=THIRD_PARTY) == {}


@pytest.mark.slow
def test_every_module_imports_alone_in_a_bare_interpreter(tmp_path: Path) -> None:
    assert import_alone(list(MODULES), tmp_path, path=ROOTS) == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import warnings\nwarnings.warn('old', DeprecationWarning)\n", "DeprecationWarning: old"),
        ("print('hello')\n", "hello"),
        ("__all__ = ['gone']\n", "AttributeError"),
        ("import no_such_module\n", "ModuleNotFoundError"),
        ("raise SystemExit(0)\n", "SystemExit"),
        ("import os\nos._exit(3)\n", "ended with the status"),
        # Works behind whoever has imported the other one first, and alone it does not.
        ("import circle_2\nx = 1\n", "circle_2"),
    ],
)
def test_a_module_that_does_not_would_be_seen(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "circle_1.py").write_text(text)
    (tmp_path / "circle_2.py").write_text("from circle_1 import x\n")
    failed = import_alone(["circle_1", "json"], tmp_path, path=[tmp_path])
    assert list(failed) == ["circle_1"]
    assert said in failed["circle_1"]


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    return {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in MODULES.items()}


def test_there_are_modules_to_look_at(trees: dict[str, ast.Module]) -> None:
    assert {"tfrecreg", "tfrecreg.cli.main", "tfrecreg_mnist"} <= set(trees)


def test_every_module_postpones_its_annotations(trees: dict[str, ast.Module]) -> None:
    without = [
        name
        for name, tree in trees.items()
        if len(tree.body) > 1  # else it is a docstring alone
        and not any(
            isinstance(node, ast.ImportFrom)
            and node.module == "__future__"
            and any(alias.name == "annotations" for alias in node.names)
            for node in tree.body
        )
    ]
    assert without == []


def test_every_module_says_what_it_is_for(trees: dict[str, ast.Module]) -> None:
    assert [name for name, tree in trees.items() if not ast.get_docstring(tree)] == []


def test_no_module_is_long() -> None:
    lines = {name: len(path.read_text("utf-8").splitlines()) for name, path in MODULES.items()}
    assert {name: count for name, count in lines.items() if count > MAX_LINES} == {}


def public_definitions(
    tree: ast.Module,
) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    for node in tree.body:
        definition = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        if not definition or node.name.startswith("_"):
            continue
        # An overload tells the type checker something; what is described is what comes below it.
        if not any(
            isinstance(each, ast.Name) and each.id == "overload" for each in node.decorator_list
        ):
            yield node


def test_public_classes_and_functions_are_described(trees: dict[str, ast.Module]) -> None:
    silent = [
        f"{name}.{node.name}"
        for name, tree in trees.items()
        for node in public_definitions(tree)
        if not ast.get_docstring(node)
    ]
    assert silent == []


def declared(tree: ast.Module) -> list[str] | None:
    """`__all__` as it is written, None where there is none."""
    for node in tree.body:
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets, value = [node.target], node.value
        else:
            continue
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            found: list[str] = ast.literal_eval(value)
            return found
    return None


def test_only_what_users_import_from_says_what_is_public(trees: dict[str, ast.Module]) -> None:
    """The package, two modules for plugins, one for PyTorch. Elsewhere an underscore is private."""
    saying = {name for name, tree in trees.items() if declared(tree) is not None}
    assert saying == {"tfrecreg", "tfrecreg.api", "tfrecreg.testing", "tfrecreg.torch"}


def test_a_name_is_imported_from_the_module_that_defines_it(trees: dict[str, ast.Module]) -> None:
    """A private package hands on nothing: its `__init__` says what its modules are for."""
    handed_on = [
        f"{name}: {ast.unparse(node)}"
        for name, tree in trees.items()
        if MODULES[name].name == "__init__.py" and name != "tfrecreg"
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if str(node.module).startswith(name) and ast.unparse(tree).count(alias.name) == 1
    ]
    assert handed_on == []


def test_what_is_public_is_sorted(trees: dict[str, ast.Module]) -> None:
    unsorted = [
        name
        for name, tree in trees.items()
        if (names := declared(tree)) is not None and names != sorted(set(names), key=_order)
    ]
    assert unsorted == []


def _order(name: str) -> tuple[int, str]:
    """Constants, then classes, then the rest, as isort and ruff have it."""
    return (0 if name.isupper() else 1 if name[:1].isupper() else 2), name

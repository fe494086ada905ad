"""The archives hold what they should and nothing else, and what is in them runs from anywhere."""

from __future__ import annotations

import json
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest
from package_support import (
    CHECKOUT,
    LIBRARY,
    Archives,
    Interpreter,
    has_compiler,
    make_wheel,
    plain_environment,
    source_modules,
    wheel_files,
    without_compiler,
)
from tests_support import flip

from tfrecreg import __version__
from tfrecreg.core.values.codes import PAGES

TEMPLATES = (
    "base.html.j2",
    "difference.html.j2",
    "index.html.j2",
    "macros.html.j2",
    "page.css",
    "page.html.j2",
    "page.js",
    "records.html.j2",
)

PLUGIN_TEMPLATES = sorted(CHECKOUT.glob("tfrecreg/builtin/new_plugin/templates/*.txt"))

STATIC = CHECKOUT / "tfrecreg" / "builtin" / "view" / "static"

VIEWER = sorted(path for path in STATIC.rglob("*") if path.is_file())
"""The browser's side of `tfrecreg view`."""

SCHEMAS = sorted(path.name for path in (CHECKOUT / "schemas").glob("*.pbtxt"))

READ_SCHEMA = """
import sys
from tfrecreg.core.build.sources.interface import bundled_schema
sys.stdout.write(bundled_schema(sys.argv[1], sys.argv[2]))
"""

MADE_SCHEMA = """
import sys
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg_mnist.source import MnistOptions, MnistSource
sys.stdout.write(MnistSource(LocalStorage("/"), MnistOptions()).schema())
"""


@pytest.fixture(scope="session")
def files(archives: Archives) -> dict[str, bytes]:
    return wheel_files(archives.wheel)


@pytest.fixture(scope="session")
def pure(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel that was built without a compiler."""
    folder = tmp_path_factory.mktemp("pure")
    return make_wheel(folder, without_compiler(folder / "bin"))


@pytest.fixture
def installed(unpacked: Path, tmp_path: Path) -> Interpreter:
    """This interpreter with its packages, where `tfrecreg` is the one of the wheel."""
    return Interpreter(sys.executable, plain_environment(tmp_path, PYTHONPATH=str(unpacked)))


def home_of(schema: str, files: dict[str, bytes]) -> list[str]:
    """The folders of the packages that carry a schema."""
    return [name.rpartition("/")[0] for name in files if name.endswith(f"/{schema}")]


def test_the_wheel_holds_every_module_as_it_stands(files: dict[str, bytes]) -> None:
    modules = {}
    for path in source_modules().values():
        root = CHECKOUT / "plugins" if path.is_relative_to(CHECKOUT / "plugins") else CHECKOUT
        modules[path.relative_to(root).as_posix()] = path.read_bytes()
    assert {name: data for name, data in files.items() if name.endswith(".py")} == modules


def test_the_wheel_has_no_top_level_names_but_its_packages_which_are_typed(
    files: dict[str, bytes], plugin_packages: list[str]
) -> None:
    tops = {name.partition("/")[0] for name in files}
    assert tops == {"tfrecreg", *plugin_packages, f"tfrecreg-{__version__}.dist-info"}
    typed = {name.partition("/")[0] for name in files if name.endswith("/py.typed")}
    assert typed == {"tfrecreg", *plugin_packages}


@pytest.mark.parametrize("schema", SCHEMAS)
def test_each_schema_lies_in_the_package_of_its_plugin(
    schema: str, files: dict[str, bytes], plugin_packages: list[str]
) -> None:
    (package,) = home_of(schema, files)
    # Objects in images are the same for several sources.
    assert package in [*plugin_packages, "tfrecreg/core/build/sources"]
    assert files[f"{package}/{schema}"] == (CHECKOUT / "schemas" / schema).read_bytes()


CODES = [*(f"{page}.md" for page in PAGES), "former.txt"]


def test_the_wheel_holds_the_viewer_s_page(files: dict[str, bytes]) -> None:
    assert {path.suffix for path in VIEWER} == {".css", ".html", ".js", ".svg"}
    for path in VIEWER:
        assert files[path.relative_to(CHECKOUT).as_posix()] == path.read_bytes()


def test_the_wheel_holds_nothing_but_code_and_data_of_its_packages(
    files: dict[str, bytes],
) -> None:
    known = (".py", ".pbtxt", "/py.typed")
    others = {name for name in files if not name.endswith(known) and ".dist-info/" not in name}
    others -= {f"tfrecreg/core/values/codes/{name}" for name in CODES}
    others -= {"tfrecreg/core/images/tokens.css"}
    others -= {f"tfrecreg/builtin/pages/templates/{name}" for name in TEMPLATES}
    others -= {path.relative_to(CHECKOUT).as_posix() for path in [*PLUGIN_TEMPLATES, *VIEWER]}
    assert others == ({LIBRARY} if has_compiler() else set())


@pytest.mark.skipif(not has_compiler(), reason="there is no C compiler")
def test_the_wheel_with_the_compiled_scanner_is_for_one_platform_and_any_python(
    archives: Archives, files: dict[str, bytes]
) -> None:
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    assert archives.wheel.name == f"tfrecreg-{__version__}-py3-none-{platform}.whl"
    about = files[f"tfrecreg-{__version__}.dist-info/WHEEL"].decode().splitlines()
    assert f"Tag: py3-none-{platform}" in about
    assert "Root-Is-Purelib: false" in about


class TestWithoutACompiler:
    """The wheel that is built where there is none: for any platform, and it finds the same."""

    def test_it_is_the_same_without_the_library(self, pure: Path, files: dict[str, bytes]) -> None:
        assert pure.name == f"tfrecreg-{__version__}-py3-none-any.whl"
        found = wheel_files(pure)
        about = found[f"tfrecreg-{__version__}.dist-info/WHEEL"].decode().splitlines()
        assert "Tag: py3-none-any" in about
        assert "Root-Is-Purelib: true" in about
        assert set(files) - set(found) == ({LIBRARY} if has_compiler() else set())

    @pytest.mark.medium
    def test_its_scanner_gives_the_same_report(
        self, pure: Path, installed: Interpreter, digits_original: Path, tmp_path: Path
    ) -> None:
        with zipfile.ZipFile(pure) as archive:
            archive.extractall(tmp_path / "pure")
        env = {**installed.env, "PYTHONPATH": str(tmp_path / "pure")}
        python = Interpreter(installed.python, env)
        done = python.tfrecreg("plugins", "list", "--json")
        assert json.loads(done.out)["scanner"] == {
            "kind": "python",
            "detail": "there is no compiled scanner: it was not compiled",
        }
        copies = []
        for number, shard in enumerate(sorted(digits_original.glob("data/digits/digits-*-of-*"))):
            copies.append(tmp_path / shard.name)
            copies[-1].write_bytes(shard.read_bytes())
            flip(copies[-1], 100 + number)
        expected = installed.tfrecreg("check", "--json", *copies)
        found = python.tfrecreg("check", "--json", *copies)
        assert (found.code, found.out) == (1, expected.out), found.err
        assert found.out.count('"CRC002"') == len(copies)


@pytest.mark.medium
def test_the_wheel_from_the_sdist_is_the_wheel_from_the_checkout(
    files: dict[str, bytes], tmp_path: Path
) -> None:
    assert wheel_files(make_wheel(tmp_path)) == files


@pytest.fixture(scope="session")
def sdist(archives: Archives) -> set[str]:
    """The names in the sdist, without the folder around them."""
    with tarfile.open(archives.sdist) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


def test_the_sdist_holds_what_builds_tests_and_explains_the_project(sdist: set[str]) -> None:
    wanted = {path.relative_to(CHECKOUT).as_posix() for path in source_modules().values()}
    wanted |= {f"schemas/{name}" for name in SCHEMAS}
    wanted |= {"pyproject.toml", "README.md", "ARCHITECTURE.md", "CHANGELOG.md", "PKG-INFO"}
    wanted |= {"hatch_build.py", "tfrecreg/core/records/walk.c"}
    for folder, pattern in (("tests", "*.py"), ("docs", "*.md")):
        found = (CHECKOUT / folder).rglob(pattern)
        wanted |= {path.relative_to(CHECKOUT).as_posix() for path in found}
    wanted |= {f"examples/{path.name}" for path in CHECKOUT.glob("examples/*.*")}
    assert wanted - sdist == set()


def test_the_sdist_holds_nothing_that_a_machine_left_behind(sdist: set[str]) -> None:
    left = [
        name
        for name in sdist
        if name.endswith((".pyc", ".so", ".so.1", ".tfrecord"))
        or set(Path(name).parts) & {"__pycache__", ".git", ".venv", ".tfrecreg", "dist"}
    ]
    assert left == []


def test_the_wheel_runs_from_anywhere(installed: Interpreter, unpacked: Path) -> None:
    done = installed.run("-c", "import tfrecreg, sys; sys.stdout.write(tfrecreg.__file__)")
    assert Path(done.out).is_relative_to(unpacked), done.err
    done = installed.tfrecreg("--version")
    assert (done.code, done.out) == (0, f"tfrecreg {__version__}\n"), done.err


def test_the_wheel_announces_its_sources_and_validators(
    installed: Interpreter, plugin_packages: list[str]
) -> None:
    done = installed.tfrecreg("plugins", "list", "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    sources = {each["name"] for each in found["sources"]}
    assert sources == {"tfrecreg", *(each.removeprefix("tfrecreg_") for each in plugin_packages)}
    validators = {each["name"] for each in found["validators"]}
    assert validators >= {"crc", "inflation", "manifest", "schema"}
    assert (found["broken"], found["clashes"]) == ([], [])


@pytest.mark.parametrize("schema", SCHEMAS)
def test_the_wheel_reads_its_own_schemas(
    schema: str, installed: Interpreter, files: dict[str, bytes]
) -> None:
    (package,) = home_of(schema, files)
    done = installed.run(
        "-c", READ_SCHEMA, package.replace("/", "."), schema.removesuffix(".pbtxt")
    )
    assert done.out.encode() == files[f"{package}/{schema}"], done.err

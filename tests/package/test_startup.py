"""What a command imports on its way: light commands stay light, whatever is installed."""

from __future__ import annotations

import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from package_support import CHECKOUT, Interpreter, plain_environment

from tfrecreg.core.plugins.bundled import COMMANDS
from tfrecreg.core.values.codes import PAGES

HEAVY = frozenset(
    {
        "PIL",
        "apache_beam",
        "aiohttp",
        "array_record",
        "distributed",
        "duckdb",
        "dvc",
        "fsspec",
        "pandas",
        "pyarrow",
        "pycocotools",
        "s3fs",
        "ray",
        "tensorflow",
        "tensorflow_data_validation",
        "tfx_bsl",
        "torch",
    }
)
"""What costs a tenth of a second to seven seconds, or is in no core installation."""

NOT_FOR_HELP = frozenset({"google.protobuf", "msgspec", "numpy", "pluggy", "rich"})

RUN = """
import sys
before = set(sys.modules)
from tfrecreg.cli.main import main
code = main(sys.argv[2:])
with open(sys.argv[1], "w") as file:
    print(code, *sorted(set(sys.modules) - before), file=file)
"""

PAGES_READ = """
import sys
pages = []
def hook(event, args):
    if event == "open" and str(args[0]).endswith(".md"):
        pages.append(str(args[0]).rpartition("/")[2])
sys.addaudithook(hook)
from tfrecreg.cli.main import main
code = main(sys.argv[2:])
with open(sys.argv[1], "w") as file:
    print(code, *pages, file=file)
"""

IMPORT = """
import sys
before = set(sys.modules)
import tfrecreg
print(*sorted(set(sys.modules) - before))
"""


@pytest.fixture
def checked_out(tmp_path: Path) -> Interpreter:
    """This interpreter and the checkout, whatever is installed."""
    path = f"{CHECKOUT}:{CHECKOUT / 'plugins'}"
    return Interpreter(sys.executable, plain_environment(tmp_path, PYTHONPATH=path))


def imported_by(python: Interpreter, folder: Path, *arguments: str | Path) -> set[str]:
    """The modules that a command imports; it has to succeed."""
    listing = folder / "modules"
    done = python.run("-c", RUN, listing, *arguments)
    assert listing.exists(), done.err
    code, *modules = listing.read_text().split()
    assert code == "0", done.err
    assert done.out
    return set(modules)


def roots(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


@pytest.mark.parametrize("arguments", [("--help",), ("-h",), ("--version",), ("check", "--help")])
def test_help_and_version_import_next_to_nothing(
    arguments: tuple[str, ...], checked_out: Interpreter, tmp_path: Path
) -> None:
    modules = imported_by(checked_out, tmp_path, *arguments)
    assert "click" in modules
    assert modules & NOT_FOR_HELP == set()
    assert roots(modules) & HEAVY == set()


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_no_command_imports_its_work(
    command: str, checked_out: Interpreter, tmp_path: Path
) -> None:
    modules = imported_by(checked_out, tmp_path, command, "--help")
    assert modules & {"google.protobuf", "numpy"} == set()
    assert roots(modules) & HEAVY == set()


@pytest.mark.medium
@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "digits"),
        ("show", "digits@1.0.0", "--json"),
        ("show", "digits@1.0.0", "--code", "keras"),
        ("show", "digits@1.0.0", "--provenance"),
        ("digest", "digits", "data/digits/digits-test.tfrecord-00000-of-00002"),
        ("check", "--only", "crc", "digits", "--same-as", "digits@1.0.0"),
        ("diff", "digits@1.0.0", "digits"),
        ("check", "--only", "crc", "digits"),
        ("check", "--only", "crc", "data/digits/digits-test.tfrecord-00000-of-00002"),
        ("check", "--only", "crc", "data/digits", "--json"),
        ("check", "digits@1.0.0"),
        ("check", "digits", "--format", "sarif"),
        ("check", "digits", "--format", "junit", "--fail-on", "never"),
        ("adopt", "more", "data/digits", "--dry-run"),
        ("head", "digits", "-n", "1"),
        ("plugins",),
        ("plugins", "list", "--json"),
        ("explain",),
    ],
    ids=" ".join,
)
def test_light_commands_import_nothing_heavy(
    arguments: tuple[str, ...], checked_out: Interpreter, tmp_path: Path, digits_original: Path
) -> None:
    found = [digits_original / each if "/" in each else each for each in arguments]
    modules = imported_by(checked_out, tmp_path, "-C", digits_original, *found)
    assert roots(modules) & HEAVY == set()


@pytest.mark.parametrize(
    "arguments",
    [
        ("list",),
        ("show", "digits@1.0.0"),
        ("log", "digits"),
        ("audit",),
        ("schema", "show", "digits"),
        ("schema", "diff", "digits@1.0.0", "digits"),
        ("gc",),
        ("explain", "CRC001"),
    ],
    ids=" ".join,
)
def test_commands_that_read_no_record_do_without_numpy(
    arguments: tuple[str, ...], checked_out: Interpreter, tmp_path: Path, digits_original: Path
) -> None:
    modules = imported_by(checked_out, tmp_path, "-C", digits_original, *arguments)
    assert roots(modules) & (HEAVY | {"numpy"}) == set()
    assert "tfrecreg.core.records.reader" not in modules
    if arguments[0] not in ("audit", "schema"):  # these read schemas
        assert "tfrecreg.core.example.decode" not in modules


@pytest.mark.medium
def test_checksums_alone_need_no_protobuf(
    checked_out: Interpreter, tmp_path: Path, digits_original: Path
) -> None:
    shard = digits_original / "data/digits/digits-test.tfrecord-00000-of-00002"
    modules = imported_by(checked_out, tmp_path, "check", "--only", "crc", shard)
    assert "google_crc32c" in modules
    assert "google.protobuf" not in modules
    assert "tfrecreg.builtin.schemas.validator" not in modules


TOML = "tomllib" if sys.version_info >= (3, 11) else "tomli"
IN_VAIN = frozenset(
    {
        "fractions",
        "google.protobuf",
        "rich.progress",
        "rich.table",
        "tfrecreg.core.terminal.progress_bar",
        "tfrecreg.core.plugins.recognition",
        "tfrecreg.core.records.reading.access",
        "tfrecreg.core.records.gzip_reader",
        "tfrecreg.core.records.writer",
        "tfrecreg.builtin.releases.audit_history",
        "tfrecreg.core.schema.check",
        "tfrecreg.core.schema.compiled",
        "tfrecreg.core.schema.definition",
        "tfrecreg.core.schema.infer",
        "tfrecreg.core.schema.proto",
        "tfrecreg.core.schema.vectorized",
        "tfrecreg.core.registry.git",
        "tfrecreg.builtin.schemas.records",
        TOML,
        # Before Python 3.11, `platform` imports it for Click.
        *(["subprocess"] if sys.version_info >= (3, 11) else []),
    }
)
"""What a check of a plain file without a schema, a registry or a terminal has no use for."""


@pytest.mark.medium
def test_a_check_of_a_small_file_imports_nothing_in_vain(
    checked_out: Interpreter, tmp_path: Path, digits_original: Path
) -> None:
    """All validators that apply run; those that do not are asked, and load no more than that."""
    shard = digits_original / "data/digits/digits-test.tfrecord-00000-of-00002"
    copy = Path(shutil.copy(shard, tmp_path))
    modules = imported_by(checked_out, tmp_path, "check", copy, "--skip", "manifest")
    assert {
        "tfrecreg.builtin.schemas.validator",
        "tfrecreg.builtin.releases.audit_validator",
    } <= modules
    assert sorted(modules & IN_VAIN) == []


@pytest.mark.medium
def test_a_check_with_a_schema_loads_what_holds_records_against_it(
    checked_out: Interpreter, tmp_path: Path, digits_original: Path
) -> None:
    """The control of the test above."""
    modules = imported_by(checked_out, tmp_path, "-C", digits_original, "check", "digits")
    assert "tfrecreg.builtin.schemas.validator" in modules
    assert modules & IN_VAIN >= {"tfrecreg.core.schema.check", "google.protobuf", TOML}


@pytest.mark.parametrize(
    ("arguments", "pages"),
    [
        (("list",), []),
        (("plugins", "list", "--json"), None),
        (("explain", "CRC001"), None),
    ],
    ids=str,
)
def test_a_command_reads_the_pages_of_codes_only_if_it_needs_them(
    arguments: tuple[str, ...],
    pages: list[str] | None,
    checked_out: Interpreter,
    tmp_path: Path,
    digits_original: Path,
) -> None:
    done = checked_out.run("-c", PAGES_READ, tmp_path / "pages", "-C", digits_original, *arguments)
    assert done.code == 0, done.err
    code, *read = (tmp_path / "pages").read_text().split()
    assert code == "0"
    if pages is None:  # all of them, and each once
        assert sorted(read) == sorted(f"{page}.md" for page in PAGES)
    else:
        assert read == pages


@pytest.mark.medium
def test_a_heavy_import_would_be_seen(checked_out: Interpreter, tmp_path: Path) -> None:
    """The control of the tests above: making a DVC repository does import DVC."""
    if find_spec("dvc") is None:
        pytest.skip("the extra `dvc` is not installed")
    modules = imported_by(checked_out, tmp_path, "init", tmp_path / "root", "--json")
    assert "dvc" in roots(modules) & HEAVY


def test_importing_the_library_imports_next_to_nothing(checked_out: Interpreter) -> None:
    done = checked_out.run("-c", IMPORT)
    modules = set(done.out.split())
    assert {name for name in modules if name.startswith("tfrecreg")} == {
        "tfrecreg",
        "tfrecreg._version",
    }, done.err
    assert roots(modules) - set(sys.stdlib_module_names) == {"tfrecreg"}


def test_a_public_name_is_imported_when_it_is_used(checked_out: Interpreter) -> None:
    code = "import sys, tfrecreg; tfrecreg.check; print(*sys.modules)"
    modules = set(checked_out.run("-c", code).out.split())
    assert "tfrecreg.library.files" in modules
    assert roots(modules) & HEAVY == set()

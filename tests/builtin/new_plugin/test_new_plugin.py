"""`plugins new` writes packages that load, run and pass their own tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from package_support import fresh_environment, make_wheel
from plugin_support import with_site
from sources_support import tfrecreg as command

from tfrecreg.builtin.new_plugin import NEW_KINDS, NewPackage, write_package
from tfrecreg.core.values.errors import UsageError


def installed(package: NewPackage, site: Path) -> dict[str, str]:
    """The environment in which the distribution is found, as if it were installed."""
    name = f"tfrecreg_{package.name}"
    info = site / f"{name}-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text(f"[tfrecreg]\n{package.name} = {name}.plugin\n")
    (site / name).symlink_to(Path(package.folder).absolute() / "src" / name)
    return {**os.environ, **with_site(site), "NO_COLOR": "1"}


@pytest.mark.parametrize(
    "kind",
    [
        kind if kind == "source" else pytest.param(kind, marks=pytest.mark.slow)
        for kind in NEW_KINDS
    ],
)
def test_a_new_package_passes_its_tests(tmp_path: Path, kind: str) -> None:
    package = write_package("fresh_one", NEW_KINDS[kind], str(tmp_path / "new"))
    env = installed(package, tmp_path / "site")
    shown = command("plugins", "show", "fresh_one", env=env)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith(f"{kind.replace('-', ' ')} fresh_one: ")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", "tests"],
        cwd=package.folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


def test_new_packages_are_free_of_lint(tmp_path: Path) -> None:
    for kind, new in NEW_KINDS.items():
        write_package("fresh_one", new, str(tmp_path / kind))
    options = ["--isolated", "--line-length", "100", "--select", "E,F,UP,B"]
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", *options, tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_a_new_package_is_built_and_tested_beside_the_wheel(tmp_path: Path) -> None:
    package = write_package("fresh_one", NEW_KINDS["source"], str(tmp_path / "new"))
    wheel = str(make_wheel(tmp_path))
    python = fresh_environment(tmp_path / "env", sys.executable, wheel, f"{package.folder}[test]")
    done = python.run("-m", "pytest", "-q", "tests", cwd=package.folder)
    assert done.code == 0, done.stdout + done.stderr


@pytest.mark.medium
def test_what_is_written_is_listed_and_the_next_commands_are_named(tmp_path: Path) -> None:
    where = tmp_path / "new"
    done = command("plugins", "new", "signs", "--validator", "--output", str(where), "--json")
    document = json.loads(done.stdout)
    assert document["kind"] == "validator"
    found = {path.relative_to(where).as_posix() for path in where.rglob("*") if path.is_file()}
    assert set(document["files"]) == found
    both = command("plugins", "new", "signs", "--engine", "--decoder")
    assert both.returncode == 2
    assert "`--engine` and `--decoder` exclude each other" in both.stderr
    again = command("plugins", "new", "signs", "--output", str(where))
    assert again.returncode == 2
    assert "exists and is not an empty folder" in again.stderr


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        ("source", "Signs", "`Signs` is not a name of a plugin"),
        ("source", "../signs", "`../signs` is not a name of a plugin"),
        ("source", "a" * 61, "is not a name of a plugin"),
        ("source", "mnist", "there is a source `mnist` already"),
        ("report-format", "json", "there is a report format `json` already"),
        ("command", "check", "there is a command `check` already"),
    ],
)
def test_a_name_that_does_not_fit_is_refused(
    tmp_path: Path, kind: str, name: str, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        write_package(name, NEW_KINDS[kind], str(tmp_path / "new"))
    assert not (tmp_path / "new").exists()


def test_its_code_is_of_no_family_of_tfrecreg(tmp_path: Path) -> None:
    write_package("crc_of_all", NEW_KINDS["validator"], str(tmp_path / "new"))
    text = (tmp_path / "new/src/tfrecreg_crc_of_all/plugin.py").read_text()
    assert 'code="CRD001"' in text

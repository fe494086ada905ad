"""The build hook: what it compiles, and what it says where it does not."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from package_support import CHECKOUT

from hatch_build import (
    LIBRARY,
    SOURCE,
    NotCompiledError,
    compile_scanner,
    platform_flags,
    platform_tag,
)

COMPILER = any(shutil.which(each) for each in ("cc", "gcc", "clang"))
needs_compiler = pytest.mark.skipif(not COMPILER, reason="there is no C compiler")


def refusal(folder: Path, environ: Mapping[str, str]) -> str:
    with pytest.raises(NotCompiledError) as caught:
        compile_scanner(CHECKOUT / SOURCE, folder / "library", environ)
    assert list(folder.iterdir()) == [], "something was left behind"
    return str(caught.value)


@pytest.mark.medium
@needs_compiler
def test_equal_sources_make_equal_libraries_wherever_they_lie(tmp_path: Path) -> None:
    for name in ("one", "two/deeper"):
        (tmp_path / name).mkdir(parents=True)
        shutil.copy(CHECKOUT / SOURCE, tmp_path / name / "walk.c")
        compile_scanner(tmp_path / name / "walk.c", tmp_path / name / "made", os.environ)
    one, two = (tmp_path / name / "made" for name in ("one", "two/deeper"))
    assert one.read_bytes() == two.read_bytes()
    assert str(tmp_path).encode() not in one.read_bytes()
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == ["made", "walk.c"]


@pytest.mark.medium
@needs_compiler
def test_the_source_has_no_warnings(tmp_path: Path) -> None:
    flags = "-Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Werror"
    compile_scanner(CHECKOUT / SOURCE, tmp_path / "library", {**os.environ, "CFLAGS": flags})
    assert (tmp_path / "library").stat().st_size > 1000


def test_not_wanted_is_not_compiled(tmp_path: Path) -> None:
    environ = {**os.environ, "TFRECREG_NO_COMPILE": "1"}
    assert refusal(tmp_path, environ) == "TFRECREG_NO_COMPILE is set"


def test_without_a_compiler_it_says_so(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    environ = {"PATH": str(empty)}
    folder = tmp_path / "folder"
    folder.mkdir()
    assert refusal(folder, environ) == "there is no C compiler (`cc`, `gcc` or `clang`)"


def test_a_compiler_that_is_not_there_is_named(tmp_path: Path) -> None:
    said = refusal(tmp_path, {**os.environ, "CC": "no-such-compiler -x"})
    assert said.startswith("`no-such-compiler -x` failed: ")


def test_a_compiler_that_fails_has_its_say(tmp_path: Path) -> None:
    said = refusal(tmp_path, {**os.environ, "CC": "sh -c 'echo it broke >&2; exit 1'"})
    assert said == "`sh -c 'echo it broke >&2; exit 1'` failed: it broke"


def test_a_compiler_that_makes_nothing_has_failed(tmp_path: Path) -> None:
    assert refusal(tmp_path, {**os.environ, "CC": "true"}) == "`true` failed: exit code 0"


@pytest.mark.parametrize(
    ("platform", "tag"),
    [
        ("linux-x86_64", "linux_x86_64"),
        ("linux-aarch64", "linux_aarch64"),
        ("macosx-11.0-arm64", "macosx_11_0_arm64"),
        ("macosx-10.9-universal2", "macosx_10_9_universal2"),
    ],
)
def test_the_tag_is_that_of_the_platform(platform: str, tag: str) -> None:
    assert platform_tag(platform) == tag


@pytest.mark.parametrize(
    ("platform", "environ", "flags", "version"),
    [
        ("macosx-11.0-arm64", {}, ["-arch", "arm64"], "11.0"),
        (
            "macosx-10.9-universal2",
            {},
            ["-arch", "arm64", "-arch", "x86_64"],
            "10.9",
        ),
        ("macosx-11.0-arm64", {"ARCHFLAGS": "-arch arm64"}, ["-arch", "arm64"], "11.0"),
        ("macosx-11.0-x86_64", {"MACOSX_DEPLOYMENT_TARGET": "12"}, ["-arch", "x86_64"], None),
    ],
)
def test_on_macos_the_library_runs_where_the_tag_says(
    platform: str, environ: Mapping[str, str], flags: list[str], version: str | None
) -> None:
    more = {} if version is None else {"MACOSX_DEPLOYMENT_TARGET": version}
    assert platform_flags("darwin", platform, environ) == (flags, more)


def test_git_ignores_the_library_of_an_editable_install() -> None:
    lines = (CHECKOUT / ".gitignore").read_text("utf-8").splitlines()
    assert f"/{LIBRARY}*" in lines

"""The documentation site: its pages, its links, and that it asks no other host for anything."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "mkdocs.yml"

if not CONFIG.exists():
    pytest.skip("the files of the site are not shipped", allow_module_level=True)


@pytest.fixture(scope="module")
def site_source() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_source", ROOT / "docs/site_source.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory, site_source: ModuleType) -> Path:
    """The pages from which the site is built."""
    folder = tmp_path_factory.mktemp("site") / "pages"
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "docs"))
        site_source.collect(ROOT, folder)
    return folder


@pytest.mark.parametrize(
    ("path", "link", "moved"),
    [
        ("docs/ci.md", "reference.md#exit-codes", "reference.md#exit-codes"),
        ("docs/ci.md", "../README.md#train", "index.md#train"),
        ("docs/training.md", "../examples/README.md", "tutorials.md"),
        ("CONTRIBUTING.md", "ARCHITECTURE.md", "REPOSITORY/blob/main/ARCHITECTURE.md"),
        ("docs/sources/boxes.md", "../releases.md", "../releases.md"),
        ("README.md", "docs/ci.md", "ci.md"),
        ("README.md", "docs/images/page.png", "images/page.png"),
        ("README.md", "docs/adr", "adr/index.md"),
        ("README.md", "tfrecreg/core/values/codes", "codes.md"),
        ("docs/schemas.md", "../tfrecreg/core/values/codes/sch.md#sch001", "codes.md#sch001"),
        ("README.md", "LICENSE", "REPOSITORY/blob/main/LICENSE"),
        ("README.md", "schemas", "REPOSITORY/tree/main/schemas"),
        ("examples/README.md", "by_hand.py", "REPOSITORY/blob/main/examples/by_hand.py"),
        ("examples/README.md", "../docs/python.md", "python.md"),
        ("docs/ci.md", "#the-gate", "#the-gate"),
        ("docs/ci.md", "https://example.org/x", "https://example.org/x"),
    ],
)
def test_a_link_leads_to_the_same_place(
    path: str, link: str, moved: str, site_source: ModuleType
) -> None:
    files = [file.relative_to(ROOT).as_posix() for file in (ROOT / "docs").rglob("*.md")]
    places = {file: file.removeprefix("docs/") for file in files} | site_source.OUTSIDE
    places |= {
        "docs/adr": site_source.DECISIONS,
        "tfrecreg/core/values/codes/sch.md": site_source.CODES,
    }
    text = f"see [this]({link})\n\n```text\n[kept](../nowhere)\n```\n"
    found = site_source.relink(text, path, places, ROOT)
    moved = moved.replace("REPOSITORY", site_source.repository(ROOT))
    assert found == text.replace(f"({link})", f"({moved})")


def test_a_link_to_nowhere_is_an_error(tmp_path: Path) -> None:
    for name in (
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "examples/README.md",
        "docs/site_source.py",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "docs/page.md").write_text("[a file](../gone.md)\n", "utf-8")
    done = subprocess.run(
        [sys.executable, str(tmp_path / "docs/site_source.py"), str(tmp_path / "pages")],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: docs/page.md: ../gone.md does not exist\n"


def test_every_page_is_in_the_navigation(pages: Path) -> None:
    named = set(re.findall(r"(?:- |: )([\w/-]+\.md)$", CONFIG.read_text("utf-8"), re.MULTILINE))
    there = {path.relative_to(pages).as_posix() for path in pages.rglob("*.md")}
    index = (pages / "adr/index.md").read_text("utf-8")
    indexed = {f"adr/{name}" for name in re.findall(r"\]\(([\w-]+\.md)\)", index)}
    assert "adr/0016-the-core-is-light.md" in indexed
    assert named == there - indexed


FIRST_WORDS = {
    "Getting started": "This tutorial ",
    "Guides": "This guide shows how to ",
    "Reference": "This reference ",
    "Background": "This page explains ",
}


def test_a_page_begins_with_what_it_is_for() -> None:
    nav = re.findall(r"^  - ([\w-][\w -]*):\n((?:      .*\n)+)", CONFIG.read_text("utf-8"), re.M)
    kinds = {kind: re.findall(r": (\S+\.md)$", listed, re.M) for kind, listed in nav}
    assert {*FIRST_WORDS} <= {*kinds}
    for kind, words in FIRST_WORDS.items():
        for page in kinds[kind]:
            path = ROOT / "docs" / page
            if path.exists():  # the others are not written below `docs/`
                text = re.sub(r"<!-- .*? -->\n\n", "", path.read_text("utf-8"))
                assert text.split("\n\n")[1].startswith(words), page


def test_the_reference_lists_every_public_name(pages: Path) -> None:
    import tfrecreg
    import tfrecreg.api

    page = (pages / "library.md").read_text("utf-8")
    listed = {place.rpartition(".")[2] for place in re.findall(r"^::: (.+)$", page, re.MULTILINE)}
    assert listed == {*tfrecreg.__all__, *tfrecreg.api.__all__} - {"__version__"}


class Requests(HTMLParser):
    """What a browser fetches to show a page."""

    FETCHED = ("script", "img", "iframe", "source", "video", "audio", "embed", "object")

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        if tag in self.FETCHED:
            self.found += [named[name] or "" for name in ("src", "srcset", "data") if name in named]
        elif tag == "link" and named.get("rel") not in ("canonical", "prev", "next"):
            self.found.append(named.get("href") or "")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, as `make site` builds it from a copy of the repository."""
    if sys.version_info < (3, 11):
        pytest.skip("requirements/site.txt needs Python 3.11")
    if not (shutil.which("make") and (ROOT / ".git").exists()):
        pytest.skip("the site is built from a checkout, with make")
    copy = tmp_path_factory.mktemp("checkout")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy / name)
    done = subprocess.run(
        ["make", "site", f"PYTHON={sys.executable}"],
        cwd=copy,
        env={name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return copy / "site/html"


@pytest.mark.slow
def test_the_site_has_its_pages(built: Path) -> None:
    for page in (".", "symptoms", "comparison", "tutorials", "reference", "library", "cli", "adr"):
        assert (built / page / "index.html").is_file(), page
    for image in ("page.png", "demo.svg"):
        assert (built / "images" / image).is_file()
    library = (built / "library/index.html").read_text("utf-8")
    assert 'id="tfrecreg.data_source"' in library
    assert "doc-module" not in library  # a module in place of a function of its name


@pytest.mark.slow
def test_no_page_asks_another_host_for_anything(built: Path) -> None:
    pages = sorted(built.rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        text = page.read_text("utf-8")
        requests = Requests()
        requests.feed(text)
        assert requests.found
        assert [each for each in requests.found if "//" in each] == [], page
        # The theme's script asks api.github.com for this element, and a host of scripts for that.
        assert 'data-md-component="source"' not in text
        assert 'class="mermaid"' not in text
    for style in built.rglob("*.css"):
        assert not re.search(r"(?:@import|url\()\s*['\"]?(?:https?:)?//", style.read_text("utf-8"))


@pytest.mark.slow
def test_no_markup_is_left_in_a_page(built: Path) -> None:
    for page in sorted(built.rglob("*.html")):
        text = page.read_text("utf-8")
        text = re.sub(r"<(pre|code|script|style)\b.*?</\1>", "", text, flags=re.DOTALL)
        assert re.findall(r"```|^\| |\|---|^- |^::: ", text, re.MULTILINE) == [], page

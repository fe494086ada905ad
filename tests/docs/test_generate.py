"""The images and the reference pages that come from the program are those of today's program."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tfrecreg.core.values.codes import CORE_CODES

DOCS = Path(__file__).parents[2] / "docs"


def generate(docs: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(docs / "generate.py"), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.medium
def test_generated_images_are_up_to_date() -> None:
    done = generate(DOCS, "--check")
    assert done.returncode == 0, f"{done.stderr}run `make docs`"


def test_the_reference_has_every_code_and_every_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS))
    pages = import_module("pages")
    page = pages.codes_page()
    for code in CORE_CODES.values():
        assert re.search(rf"^### {code.code} {code.rule}$", page, re.MULTILINE)
        assert code.page.strip() in page
    commands = pages.cli_page()
    for path, _ in pages.command_tree():
        assert re.search(rf"^##+ {' '.join(path)}$", commands, re.MULTILINE)


@pytest.mark.parametrize("image", ["images/concepts.svg", "images/demo.svg"])
def test_the_image_names_no_place_and_asks_for_nothing(image: str) -> None:
    text = (DOCS / image).read_text("utf-8")
    ElementTree.fromstring(text)
    assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)", text)
    assert "@import" not in text
    assert "url(http" not in text
    assert not re.findall(r"/(?!tmp/demo)(?:home|root|tmp|work)/[\w/]+", text)

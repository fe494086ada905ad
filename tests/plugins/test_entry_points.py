"""Entry points, read from the metadata on the path."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tfrecreg.core.plugins.entry_points import may_be_installed
from tfrecreg.core.plugins.manager import Plugins

Site = Any  # of conftest.py, which test modules cannot import

OURS = "[tfrecreg]\nlines = lines_plugin\n"


@pytest.mark.parametrize(
    ("folder", "text", "found"),
    [
        ("lines-1.0.dist-info", OURS, True),
        ("lines.egg-info", OURS, True),
        ("tfrecreg_beam-1.0.dist-info", OURS, True),
        ("tfrecreg-beam-1.0.dist-info", OURS, True),
        ("tfrecreg-0.1.0.dist-info", OURS, False),
        ("tfrecreg.egg-info", OURS, False),
        ("lines-1.0.dist-info", "[console_scripts]\ntfrecreg = lines:run\n", False),
        ("lines-1.0.dist-info", None, False),
        ("lines", OURS, False),
    ],
)
def test_what_metadata_say(
    folder: str, text: str | None, found: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / folder).mkdir()
    if text is not None:
        (tmp_path / folder / "entry_points.txt").write_text(text)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "absent"), str(tmp_path)])
    assert may_be_installed() is found


def test_the_backport_of_importlib_metadata_changes_nothing(site: Site) -> None:
    """Once imported, it answers for the standard library, and refuses an invalid line."""
    pytest.importorskip("importlib_metadata", reason="not installed with this Python")
    site.source("several", "lines")
    info = site.folder / "several-1.0.dist-info" / "entry_points.txt"
    info.write_text(info.read_text() + "fourth = not a module\n")
    code = """
        import sys, importlib_metadata
        from tfrecreg.core.plugins.code_digest import code_digest
        from tfrecreg.core.workers.handshake import terms
        from tfrecreg.core.plugins.manager import Plugins
        from tfrecreg.core.plugins.records import (SourceRecord)
        found = Plugins.search(sys.argv[1:])
        print([one.name for one in found.every(SourceRecord)], [one.reason for one in found.broken])
        print(terms().versions["several"], code_digest("several") != code_digest("nobody"))
    """
    command = [sys.executable, "-c", dedent(code), str(site.folder)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site.folder), *sys.path])}
    ended = subprocess.run(command, check=True, capture_output=True, text=True, env=env)
    assert ended.stdout.splitlines() == [
        "['lines'] ['`not a module` should have the form `module` or `module:object`']",
        "1.0 True",
    ]


def test_a_line_that_is_no_entry_point_breaks_its_distribution(site: Site) -> None:
    site.source("several", "lines")
    info = site.folder / "several-1.0.dist-info" / "entry_points.txt"
    info.write_text(f"# main\n{info.read_text()}second\n[others]\nthird\n")
    broken = Plugins.search([str(site.folder)]).broken
    assert {each.distribution: each.reason for each in broken} == {
        "several": "its entry point `second` is not `name = value`"
    }

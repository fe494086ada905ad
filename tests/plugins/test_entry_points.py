"""Entry points, read from the metadata on the path."""

from __future__ import annotations

import os
import subprocess
import sys
from textwrap import dedent
from typing import Any

import pytest

Site = Any  # of conftest.py, which test modules cannot import


def test_the_backport_of_importlib_metadata_changes_nothing(site: Site) -> None:
    """Once imported, it answers for the standard library, and refuses an invalid line."""
    pytest.importorskip("importlib_metadata", reason="not installed with this Python")
    site.source("several", "lines")
    info = site.folder / "several-1.0.dist-info" / "entry_points.txt"
    info.write_text(info.read_text() + "fourth = not a module\n")
    code = """
        import sys, importlib_metadata
        from tfrecreg.core.plugins.code_digest import (code_digest)
        from tfrecreg.core.workers.executor import versions
        from tfrecreg.core.plugins.manager import Plugins
        from tfrecreg.core.plugins.records import (SourceRecord)
        found = Plugins.search(sys.argv[1:])
        print([one.name for one in found.every(SourceRecord)], [one.reason for one in found.broken])
        print(versions()["several"].split()[0], code_digest("several") != code_digest("nobody"))
    """
    command = [sys.executable, "-c", dedent(code), str(site.folder)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site.folder), *sys.path])}
    ended = subprocess.run(command, check=True, capture_output=True, text=True, env=env)
    assert ended.stdout.splitlines() == [
        "['lines'] ['`not a module` should have the form `module` or `module:object`']",
        "1.0 True",
    ]

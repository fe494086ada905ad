"""The command that a hint names installs what is installed, from where it came."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tfrecreg.core.values.errors import install_command

WHEEL = "https://example.org/tfrecreg-0.1.0-py3-none-any.whl"
GIT = {"vcs": "git", "commit_id": "0123abc"}


def installed(site: Path, name: str, origin: object = None) -> None:
    """What an installer leaves of a distribution."""
    about = site / f"{name.replace('-', '_')}-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "INSTALLER").write_text("pip\n")
    if origin is not None:
        (about / "direct_url.json").write_text(
            origin if isinstance(origin, str) else json.dumps(origin)
        )


def said(site: Path, call: str) -> str:
    """The result of a call in a process of which `site` is the first place to look."""
    code = f"from tfrecreg.core.values.errors import *; print({call})"
    path = os.pathsep.join((str(site), *filter(None, sys.path)))
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("origin", "install", "upgrade"),
    [
        (None, "pip install 'tfrecreg[tf]'", "pip install --upgrade tfrecreg"),
        (
            {"url": "file:///home/ada/a%20b", "dir_info": {"editable": True}},
            "pip install -e '/home/ada/a b[tf]'",
            "this tfrecreg was installed from `/home/ada/a b`: install a newer one",
        ),
        (
            {"url": "file:///home/ada/tfrecreg", "dir_info": {}},
            "pip install '/home/ada/tfrecreg[tf]'",
            "this tfrecreg was installed from `/home/ada/tfrecreg`: install a newer one",
        ),
        (
            {"url": WHEEL, "archive_info": {}},
            f"pip install 'tfrecreg[tf] @ {WHEEL}'",
            f"this tfrecreg was installed from `{WHEEL}`: install a newer one",
        ),
        (
            {"url": "https://example.org/t.git", "vcs_info": GIT},
            "pip install 'tfrecreg[tf] @ git+https://example.org/t.git@0123abc'",
            "this tfrecreg was installed from `git+https://example.org/t.git@0123abc`: "
            "install a newer one",
        ),
    ],
)
def test_an_extra_comes_from_where_tfrecreg_came_from(
    tmp_path: Path, origin: Any, install: str, upgrade: str
) -> None:
    installed(tmp_path, "tfrecreg", origin)
    call = "install_command(extra='tf'), upgrade_hint(), sep='|'"
    assert said(tmp_path, call) == f"{install}|{upgrade}"


def test_an_origin_cannot_mislead_a_shell_or_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    url = "https://x/a'; rm -rf ~; '\x1b[2J.whl"
    installed(tmp_path, "pets-of-eve", {"url": url, "archive_info": {}})
    found = install_command("pets-of-eve")
    assert found.isprintable()
    assert found.endswith("""'pets-of-eve @ https://x/a'"'"'; rm -rf ~; '"'"'\\x1b[2J.whl'""")

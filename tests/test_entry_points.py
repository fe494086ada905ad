"""Whether there may be plugins of others, from the metadata on the path."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tfrecreg.entry_points import may_be_installed

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

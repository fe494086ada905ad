"""The code of ``show --code tfds``, run as it is pasted, after the command in its first line."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

import tfrecreg
from tfrecreg.builtin.look.snippets import snippet
from tfrecreg.cli.main import main

pytestmark = pytest.mark.slow


def test_tfds_reads_an_example(
    digits_original: Path, tmp_path: Path, run_tfds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    release = tfrecreg.open(digits_original).find("digits@1.0.0")
    script = snippet(release, "tfds", registry=str(digits_original))
    before, _, command = script.partition("\n")[0].partition(": tfrecreg ")
    assert before == "# first, at the command line"
    assert main(shlex.split(command)) == 0
    done = run_tfds("-c", script, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-4000:]
    assert "'image/class/label', 'image/encoded', " in done.stdout

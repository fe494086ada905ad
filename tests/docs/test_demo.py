"""What the demo shows is what its commands print to somebody who types them."""

from __future__ import annotations

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from tfrecreg.cli.main import main

OUTCOMES = {"tfrecreg check digits@1.0.0": 0, "tfrecreg check damaged": 1}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of a demo, and its output. The tests run commands there that change nothing."""
    folder = tmp_path_factory.mktemp("shown") / "demo"
    (folder.parent / "tfrecreg.toml").touch()  # a registry around the demo is left alone
    output = StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(output):
        patch.setenv("TFRECREG_JOBS", "1")
        # DVC makes no difference to what is shown, only to the time it takes.
        patch.setattr("tfrecreg.builtin.dvc.dvc.available", lambda: False)
        assert main(["demo", str(folder)]) == 0
        assert main(["demo", str(folder)]) == main(["demo", f"{__file__}/demo"]) == 2
    return folder, output.getvalue()


def test_the_checks_of_the_demo_print_what_it_showed(
    demo: tuple[Path, str], monkeypatch, capsys
) -> None:
    folder, shown = demo
    monkeypatch.chdir(folder)
    steps = dict(re.findall(r"^\$ ([^\n]*)\n(.*?)\n\n", shown, re.MULTILINE | re.DOTALL))
    built = steps["tfrecreg build digits --source mnist --raw raw --shards 2"].splitlines()
    assert built[0] == "built digits, in data/digits"
    assert [line.split()[0] for line in built[1:]] == ["size", "items"]
    for command, code in OUTCOMES.items():
        assert main(command.split()[1:]) == code
        assert capsys.readouterr().out.strip() == steps[command].strip()


def test_what_to_try_next_can_be_tried(demo: tuple[Path, str], monkeypatch, capsys) -> None:
    folder, shown = demo
    monkeypatch.chdir(folder)
    proposed = shown.partition("What to try next\n")[2].splitlines()
    commands = [line.partition("#")[0].split() for line in proposed]
    assert commands[0] == ["cd", str(folder)]
    assert commands[-1][-1] == "YOUR/FILES/*.tfrecord"
    for command in commands[1:-1]:
        assert main(command[1:]) == 0, capsys.readouterr().err


def test_the_files_of_the_guides_are_what_they_are_called_and_replace_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", "--files", str(tmp_path)]) == 0
    listed = [line.split("/ ")[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == sorted(path.name for path in tmp_path.iterdir())
    assert main(["check", str(tmp_path / "exports")]) == 0
    assert main(["check", str(tmp_path / "shards")]) == 1
    registry = str(tmp_path / "registry")
    assert main(["init", "--no-dvc", registry]) == 0
    sources = {"coco": "coco", "mnist": "mnist", "more-mnist": "mnist", "pets": "imagefolder"}
    for folder, source in {**sources, "kaggle": "table"}.items():
        words = ["--source", source, "--raw", str(tmp_path / folder), "--dry-run"]
        assert main(["-C", registry, "build", "some", *words]) == 0
    (tmp_path / "shards/train-00000-of-00002.tfrecord").write_bytes(b"mine")
    assert main(["demo", "--files", str(tmp_path)]) == 2
    assert (tmp_path / "shards/train-00000-of-00002.tfrecord").read_bytes() == b"mine"

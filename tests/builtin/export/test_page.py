"""`docs/export.md`: what the page shows for the formats of other libraries works as written.

The blocks for TFDS run in `test_tfds_reads.py`, that for TFDV in `test_tfx.py`. Not run are those
for DALI and for TFX, whose packages cannot be installed beside the others.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tfrecreg.core.plugins.manager import plugins
from tfrecreg.core.plugins.records import ExporterRecord

from .conftest import run_python

DOCS = Path(__file__).parents[3] / "docs/export.md"
PAGE = DOCS.read_text("utf-8")
COMMANDS = re.findall(r"^```sh\ntfrecreg (.*?)\n```$", PAGE, re.MULTILINE)
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
PACKAGES = {
    "array_record.python": ("arrayrecord", "200 ("),
    "import pandas": ("parquet", "__key__ __split__  image/class/label"),
    "import json": ("jsonl", "{'image/class/label': ['"),
    "import webdataset": ("webdataset", "(28, 28, 3) "),
}
"""A part of a block, the format that it reads, and how its output begins."""

HUGGING_FACE = """
import sys
import datasets

for name in sys.argv[1:]:
    found = datasets.load_dataset(name)
    print({split: found[split].num_rows for split in sorted(found)}, *sorted(found["train"][0]))
"""


def block(part: str) -> str:
    (found,) = (each for each in BLOCKS if part in each)
    return str(found)


def test_every_format_has_its_command() -> None:
    formats = {command.split()[3] for command in COMMANDS if command.startswith("export ")}
    # docs/remote-data.md has the command of the other.
    assert formats | {"files"} == set(plugins().names(ExporterRecord))
    for part in PACKAGES:
        assert block(part)


@pytest.mark.slow
@pytest.mark.parametrize("part", PACKAGES)
def test_a_block_reads_what_its_command_wrote(
    part: str, digits_registry: Path, tmp_path: Path
) -> None:
    to, beginning = PACKAGES[part]
    for package in re.findall(r"^(?:from|import) (\w+)", block(part), re.MULTILINE):
        if package != "tfrecreg":
            pytest.importorskip(package)
    (command,) = (each for each in COMMANDS if f"--to {to} digits-" in each)
    *arguments, folder = command.split()
    run = [sys.executable, "-m", "tfrecreg", "-C", str(digits_registry), *arguments]
    for step in ([*run, str(tmp_path / folder)], [sys.executable, "-c", block(part)]):
        done = subprocess.run(step, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.strip().startswith(beginning.strip())


@pytest.mark.slow
def test_hugging_face_finds_splits_and_columns(
    digits_registry: Path,
    tmp_path: Path,
    huggingface_python: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the newest releases of datasets and pyarrow."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    for to in ("parquet", "webdataset"):
        pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")
        arguments = ["-C", str(digits_registry), "export", "digits", "--to", to, str(tmp_path / to)]
        subprocess.run(
            [sys.executable, "-m", "tfrecreg", *arguments], check=True, capture_output=True
        )
    folders = [str(tmp_path / to) for to in ("parquet", "webdataset")]
    done = run_python(huggingface_python, "-c", HUGGING_FACE, *folders, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-4000:]
    columns = "__key__ __rest__ __split__ image/class/label image/encoded image/format"
    assert done.stdout.splitlines() == [
        f"{{'test': 60, 'train': 200}} {columns} image/height image/width",
        "{'test': 60, 'train': 200} __key__ __url__ cls json png",
    ]


@pytest.mark.slow
def test_the_block_for_hugging_face_gives_images_and_names(
    digits_registry: Path,
    tmp_path: Path,
    huggingface_python: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    export = ["export", "digits@1.0.0", "--to", "parquet", str(tmp_path / "digits-parquet")]
    run = [sys.executable, "-m", "tfrecreg", "-C", str(digits_registry), *export]
    subprocess.run(run, check=True, capture_output=True)
    done = run_python(huggingface_python, "-c", block("import datasets"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout == f"{[str(each) for each in range(10)]} (28, 28)\n"

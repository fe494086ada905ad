"""Small raw data for the three bundled sources."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tfrecreg.core.registry.init import init

ROOT = Path(__file__).parents[2]
WRITE = """
import sys
from pathlib import Path
from sample_data import write_coco, write_digits, write_image_folder
raw = Path(sys.argv[1])
write_digits(raw / "mnist", train=600, test=100)
write_image_folder(raw / "imagefolder", images=24)
write_coco(raw / "coco", train=12, validation=6)
"""

SOURCES = {"mnist": 50, "imagefolder": 6, "coco": 3}
"""Records per shard by source."""


def make_raw(folder: Path) -> None:
    """The raw data of each source in a folder of its name."""
    env = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'examples'}"}
    subprocess.run([sys.executable, "-c", WRITE, str(folder)], env=env, check=True)


def tfrecreg(
    *arguments: str | Path, env: Mapping[str, str] | None = None, python: str = sys.executable
) -> subprocess.CompletedProcess[str]:
    """A command that was run to its end."""
    return subprocess.run(
        [python, "-m", "tfrecreg", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "NO_COLOR": "1", "COLUMNS": "100", **(env or {})},
    )


def new_registry(folder: Path) -> Path:
    """A registry without DVC, as `tfrecreg init --no-dvc` makes it."""
    init(folder, with_dvc=False)
    return folder


def build_arguments(registry: Path, source: str, raw: Path, *more: str) -> list[str]:
    """A build of a source's data, named as the source."""
    return [
        *("-C", str(registry), "build", source, "--source", source, "--raw", str(raw / source)),
        *("--records-per-shard", str(SOURCES[source]), *more),
    ]


def digests(folder: Path) -> dict[str, str]:
    """The digest of each file of a build, by path."""
    found = {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    assert "manifest.json" in found
    return found

"""This repository's own pipeline, from a clean clone: drawn, built, checked and gated."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tfrecreg.builtin.dvc.pipeline import pipeline
from tfrecreg.core.registry.registry import open_registry

ROOT = Path(__file__).parents[2]
OWN = "examples/own-registry"
DATASETS = ("digits", "pictures", "scenes")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("dvc") is None, reason="the extra `dvc` is missing"),
    pytest.mark.skipif(not (ROOT / OWN / "dvc.yaml").exists(), reason="this is no clone"),
]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """What git has of the pipeline, without what was made: as CI sees it the first time."""
    root = tmp_path / "clone"
    here = root / OWN
    own = (
        ".gitignore",
        "data/.gitignore",
        "demo/draw.py",
        "demo/scenes.pbtxt",
        "dvc.yaml",
        "tfrecreg.toml",
        *(f"datasets/{name}.toml" for name in DATASETS),
        *(f"registry/{name}/.gitkeep" for name in DATASETS),
        "schemas/digits.pbtxt",
        "schemas/pictures.pbtxt",
    )
    for file in (
        ".dvc/config",
        ".dvc/.gitignore",
        ".dvcignore",
        *(f"{OWN}/{each}" for each in own),
    ):
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / file, root / file)
    for name in DATASETS:  # the reports that are made anew keep their folders in a clone
        (here / f"reports/{name}").mkdir(parents=True)
    (root / "tfrecreg/cli").mkdir(parents=True)
    shutil.copy(ROOT / "tfrecreg/cli/digits.py", root / "tfrecreg/cli")
    subprocess.run(["git", "init", "--quiet", str(root)], check=True)
    return here


def test_its_stages_are_up_to_date() -> None:
    assert pipeline(open_registry(ROOT / OWN), look=True).current


def test_it_builds_checks_and_gates_the_three_sources(clone: Path, tmp_path: Path) -> None:
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    for name, more in (("tfrecreg", "-m tfrecreg"), ("python", "")):
        program = bin_ / name
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {more} "$@"\n')
        program.chmod(0o755)
    environment = {
        "PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}",
        # The clone has no package of its own: what is under test is what runs.
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'plugins'}",
        "HOME": str(tmp_path),
        "TFRECREG_JOBS": "1",
        "DVC_NO_ANALYTICS": "1",
        "DVC_SITE_CACHE_DIR": str(tmp_path / "site"),
    }
    said = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-m", "dvc", "repro"],
            cwd=clone,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stdout
        said.append(done.stdout)
    kinds = ("build", "check", "gate")
    stages = ["draw", *(f"{kind}-{name}" for name in DATASETS for kind in kinds)]
    assert re.findall(r"^Running stage '([^']*)'", said[0], re.MULTILINE) == stages
    assert said[0].count("\npass: 0 errors, 0 warnings") == 3
    assert "Running stage" not in said[1]
    numbers = {
        name: json.loads((clone / f"reports/{name}/metrics.json").read_text()) for name in DATASETS
    }
    assert numbers["digits"]["splits"] == {"test": 200, "train": 600}
    assert numbers["pictures"]["splits"] == {"test": 200, "train": 600}
    assert numbers["scenes"]["splits"] == {"train": 80, "validation": 20}
    classes = (clone / "reports/scenes/plots/classes.csv").read_text().splitlines()
    assert classes[0] == "class,records"
    assert len(classes) == 11

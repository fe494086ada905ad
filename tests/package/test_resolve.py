"""Every extra resolves with plain pip, the newest there is, while its user waits.

Promised are three minutes for `all` and one for any other extra, on a machine with nothing else to
do. Without bounds pip tries releases of a hundred packages for longer than anybody waits: what
these tests catch. They grant four times as much, so that a busy machine does not fail them.

A Python that this machine lacks is skipped, and so is everything where no index is reached.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from package_support import CHECKOUT, PYTHONS, Archives, find_python, fresh_environment

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = pytest.mark.slow

EXTRAS = set(
    tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"][
        "optional-dependencies"
    ]
) - {"dev", "tfdv-1-16"}
"""Those that users ask for. `make` installs `dev`, with pins. With Python 3.10 and 3.11, `tfdv` is
`tfdv-1-16`, which is empty with others."""
LARGE = {"all", "tfdv"}
LIGHT = {"arrayrecord", "coco", "images", "media", "parquet", "query", "remote", "view", "yaml"}
"""Those that take a second or two each are resolved together."""
OLD = ("3.10", "3.11")
"""Pythons with which `all` has what `tfdv` asks for, so `tfdv` is not resolved again."""
CASES = [
    (version, extra)
    for version in PYTHONS
    for extra in (
        [*sorted(EXTRAS - LIGHT), ",".join(sorted(EXTRAS & LIGHT))]
        if version in (PYTHONS[0], PYTHONS[-1])
        else sorted(LARGE)
    )
    if extra != "tfdv" or version not in OLD
]
"""All extras with the oldest and the newest Python, the large ones with the others."""
SECONDS, LONGEST = 240, {"all": 720}
"""Four times what is promised: without the bounds it is more than ten minutes."""
TFDV = "tensorflow-data-validation"


def pip(python: Path, *arguments: str, seconds: float = 600) -> subprocess.CompletedProcess[str]:
    command = [str(python), "-m", "pip", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd="/", timeout=seconds
    )


@pytest.fixture(scope="module")
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def python(version: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new virtual environment with the newest pip and nothing else."""
    found = find_python(version)
    if found is None:
        pytest.skip(f"there is no Python {version} on this machine")
    made = tmp_path_factory.mktemp("env") / version
    inside = Path(fresh_environment(made, found, "pip").python)
    probe = pip(
        inside, "install", "--dry-run", "--no-deps", "--retries", "0", "tensorflow-metadata"
    )
    if probe.returncode != 0:
        pytest.skip(f"nothing can be resolved: {probe.stderr.strip().splitlines()[-1]}")
    return inside


def has_wheel_of_tfdv(version: str) -> bool | None:
    """Whether TFDV has a wheel for that Python here; None where its extra asks for nothing."""
    if (sys.platform, platform.machine()) == ("darwin", "arm64"):
        return True
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        return None
    libc, number = platform.libc_ver()
    new = libc == "glibc" and tuple(map(int, number.split(".")[:2])) >= (2, 39)
    return version in OLD or new


@pytest.mark.parametrize(("version", "extra"), CASES, indirect=["version"])
@pytest.mark.sweep
def test_an_extra_resolves_while_its_user_waits(
    extra: str, version: str, python: Path, archives: Archives, tmp_path: Path
) -> None:
    report = tmp_path / "report.json"
    seconds = LONGEST.get(extra, SECONDS)
    options = ("--dry-run", "--ignore-installed", "--quiet", "--report", str(report))
    wanted = f"tfrecreg[{extra}] @ {archives.wheel.as_uri()}"
    try:
        done = pip(python, "install", *options, wanted, seconds=seconds)
    except subprocess.TimeoutExpired:
        pytest.fail(f"pip takes longer than {seconds} s for `{extra}` on Python {version}")
    if extra == "tfdv" and has_wheel_of_tfdv(version) is False:
        # What was asked for by name is refused: a marker cannot see glibc, so pip says it.
        assert done.returncode == 1
        assert f"No matching distribution found for {TFDV}~=1.21.0" in done.stderr
        return
    assert done.returncode == 0, done.stderr
    plan = json.loads(report.read_text("utf-8"))["install"]
    found = {each["metadata"]["name"].lower().replace("_", "-"): each["metadata"] for each in plan}
    assert "tfrecreg" in found
    on_linux = sys.platform == "linux"
    if extra == "all" and version in OLD and on_linux and has_wheel_of_tfdv(version):
        assert found[TFDV]["version"].startswith("1.16.")
    if extra == "tfdv" and has_wheel_of_tfdv(version):
        assert found[TFDV]["version"].startswith("1.21.")

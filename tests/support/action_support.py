"""The GitHub Action, its steps run as a runner runs them."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from package_support import CHECKOUT


@cache
def load(path: str) -> Any:
    """A YAML file of the project, to read only: every step of a test looks at it."""
    from ruamel.yaml import YAML

    return YAML(typ="safe", pure=True).load((CHECKOUT / path).read_text("utf-8"))


@dataclass
class Runner:
    """A machine of CI: the programs under test, and a registry as the current folder."""

    here: Path
    temp: Path
    environment: dict[str, str]
    code: int = 0
    """The exit code of the last step."""

    def bash(self, script: str, *, expect: int | None = 0) -> str:
        """Run a script as GitHub starts it for `shell: bash`; its output."""
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
            cwd=self.here,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
        self.code = done.returncode
        assert expect in (None, self.code), f"{self.code}: {done.stdout}"
        return done.stdout

    def step(self, name: str, *, expect: int | None = 0, **inputs: str) -> str:
        """Run a step of the action with inputs; the others have their defaults. Its output."""
        action = load("action.yml")
        (step,) = [each for each in action["runs"]["steps"] if each.get("name") == name]
        given = {key: each["default"] for key, each in action["inputs"].items()}
        named = {key.replace("_", "-"): value for key, value in inputs.items()}
        assert named.keys() <= given.keys()
        known = {f"${{{{ inputs.{key} }}}}": value for key, value in (given | named).items()}
        known["${{ github.action_path }}"] = "/the/action"
        outputs = self.temp / "outputs"
        outputs.write_text("")
        variables = {key: known[text] for key, text in step["env"].items()}
        self.environment |= {"GITHUB_OUTPUT": str(outputs), **variables}
        return self.bash(step["run"], expect=expect)

    @property
    def outputs(self) -> dict[str, str]:
        lines = (self.temp / "outputs").read_text("utf-8").splitlines()
        return dict(line.split("=", 1) for line in lines)


def open_runner(here: Path, temp: Path) -> Runner:
    """A runner in the folder of a registry; `temp` is its folder for temporary files."""
    (temp / "bin").mkdir()
    environment = {
        "PATH": f"{temp / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": f"{CHECKOUT}:{CHECKOUT / 'plugins'}",
        "HOME": str(temp),
        "TFRECREG_JOBS": "1",
        "DVC_NO_ANALYTICS": "1",
        "DVC_SITE_CACHE_DIR": str(temp / "site"),
        "GITHUB_STEP_SUMMARY": str(temp / "summary.md"),
        "RUNNER_TEMP": str(temp),
    }
    return Runner(here, temp, environment)

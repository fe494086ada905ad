"""The GitHub Action, its steps run as a runner runs them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
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
    environment: dict[str, str] = field(default_factory=dict)

    def bash(self, script: str, *, expect: int, arguments: list[str] | None = None) -> str:
        """Run a script as GitHub starts it for `shell: bash`; its output."""
        code, said = self._run(script, arguments or [])
        assert code == expect, f"{code}: {said}"
        return said

    def _run(self, script: str, arguments: list[str]) -> tuple[int, str]:
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
        done = subprocess.run(
            [*command, "bash", *arguments],
            cwd=self.here,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
        return done.returncode, done.stdout

    def step(self, name: str, *, expect: int = 0, **inputs: str) -> str:
        """Run a step of the action with inputs; the others have their defaults. Its output."""
        code, said = self.run(name, **inputs)
        assert code == expect, f"{code}: {said}"
        return said

    def run(self, name: str, **inputs: str) -> tuple[int, str]:
        """The exit code of a step, and its output."""
        action = load("action.yml")
        (step,) = [each for each in action["runs"]["steps"] if each.get("name") == name]
        given = {key: each["default"] for key, each in action["inputs"].items()}
        named = {key.replace("_", "-"): value for key, value in inputs.items()}
        assert named.keys() <= given.keys()
        given |= named
        variables = {key: _evaluated(text, given) for key, text in step["env"].items()}
        outputs = self.temp / "outputs"
        outputs.write_text("")
        self.environment |= {"GITHUB_OUTPUT": str(outputs), **variables}
        return self._run(step["run"], [])

    @property
    def outputs(self) -> dict[str, str]:
        """The outputs of the last step."""
        lines = (self.temp / "outputs").read_text("utf-8").splitlines()
        return dict(line.split("=", 1) for line in lines)


def _evaluated(expression: str, inputs: dict[str, str]) -> str:
    known = {f"inputs.{name}": value for name, value in inputs.items()}
    known["github.action_path"] = "/the/action"
    (found,) = re.findall(r"^\$\{\{ (\S+) \}\}$", expression)
    return known[found]


def open_runner(here: Path, temp: Path) -> Runner:
    """A runner in the folder of a registry; `temp` is its folder for temporary files."""
    bin_ = temp / "bin"
    bin_.mkdir()
    for name, module in (("tfrecreg", "-m tfrecreg"), ("dvc", "-m dvc"), ("python", "")):
        program = bin_ / name
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {module} "$@"\n')
        program.chmod(0o755)
    environment = {
        "PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": f"{CHECKOUT}{os.pathsep}{CHECKOUT / 'plugins'}",
        "HOME": str(temp),
        "TFRECREG_JOBS": "1",
        "DVC_NO_ANALYTICS": "1",
        "DVC_SITE_CACHE_DIR": str(temp / "site"),
        "GITHUB_STEP_SUMMARY": str(temp / "summary.md"),
        "RUNNER_TEMP": str(temp),
    }
    return Runner(here, temp, environment)

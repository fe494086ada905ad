"""Schemas of absurd size end a command with one line, and soon."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from registry_support import write

PATIENCE = 60
"""Seconds: far more than it takes, far less than it took when it was read."""


def run(root: Path, *arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "tfrecreg", "-C", str(root), *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**os.environ, "COLUMNS": "300"},
    )
    return done.returncode, done.stderr


@pytest.mark.slow  # a second for each command
@pytest.mark.parametrize(
    "command",
    [
        ("check", "digits"),
        ("schema", "diff", "digits@1.0.0", "digits"),
        ("schema", "accept", "digits"),
        ("schema", "check", "digits"),
    ],
)
@pytest.mark.parametrize("what", ["values", "features"])
def test_a_schema_of_absurd_size_is_refused(
    digits_registry: Path, command: tuple[str, ...], what: str
) -> None:
    if what == "values":
        values = "".join(f'value: "v{n}"\n' for n in range(1_000_000))
        text = f'feature {{ name: "v" type: BYTES string_domain {{ {values} }} }}\n'
    else:
        text = "".join(f'feature {{ name: "f{n}" type: INT }}\n' for n in range(100_000))
    write(digits_registry / "schemas/digits.pbtxt", text)
    code, err = run(digits_registry, *command)
    assert code == 2
    assert err.startswith("error: schemas/digits.pbtxt: the schema has more than ")
    assert len(err.splitlines()) == 1

"""Each module can be imported before all others, and is small."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from package_support import CHECKOUT, plain_environment, source_modules

MODULES = source_modules()
MAX_LINES = 650
ALONE = Path(__file__).with_name("import_alone.py")


@pytest.mark.slow
def test_every_module_imports_alone_in_a_bare_interpreter(tmp_path: Path) -> None:
    path = [str(CHECKOUT), str(CHECKOUT / "plugins")]
    done = subprocess.run(
        [sys.executable, "-W", "error", str(ALONE)],
        input=json.dumps({"path": path, "modules": list(MODULES)}),
        # Threads of a numerical library would make Python warn of the forks.
        env=plain_environment(
            tmp_path, OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", TF_CPP_MIN_LOG_LEVEL="3"
        ),
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {}


def test_no_module_is_long() -> None:
    lines = {name: len(path.read_text("utf-8").splitlines()) for name, path in MODULES.items()}
    assert {name: count for name, count in lines.items() if count > MAX_LINES} == {}

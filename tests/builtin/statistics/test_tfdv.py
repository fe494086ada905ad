from __future__ import annotations

import subprocess
import sys

import pytest
from statistics_support import needs_tfdv


@pytest.mark.slow
def test_importing_it_says_nothing_and_leaves_logging_as_it_was() -> None:
    needs_tfdv()
    code = (
        "import logging; from tfrecreg.builtin.statistics.tfdv import load_tfdv; load_tfdv();"
        "assert logging.getLogger().handlers == []"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

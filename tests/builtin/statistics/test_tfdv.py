from __future__ import annotations

import subprocess
import sys

import pytest
from statistics_support import needs_tfdv


@pytest.mark.slow
def test_a_process_without_a_stream_of_errors_imports_it_too() -> None:
    needs_tfdv()
    home = "tfrecreg.builtin.statistics.tfdv"
    code = f"import os; os.close(2); from {home} import load_tfdv; load_tfdv()"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.slow
def test_importing_it_says_nothing_and_leaves_logging_as_it_was() -> None:
    needs_tfdv()
    code = (
        "import logging; from tfrecreg.builtin.statistics.tfdv import load_tfdv; load_tfdv();"
        "assert logging.getLogger().handlers == []"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

"""The notebook `examples/tour.ipynb`, run in a kernel as Jupyter runs it."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

TOUR = Path(__file__).parents[2] / "examples/tour.ipynb"


def test_the_notebook_is_kept_without_outputs() -> None:
    notebook = nbformat.read(TOUR, as_version=4)
    nbformat.validate(notebook)
    for each in notebook.cells:
        assert (each.get("outputs"), each.get("execution_count")) in (([], None), (None, None))


@pytest.mark.slow
@pytest.mark.skipif(find_spec("tensorflow") is None, reason="the extra `tf` is missing")
def test_the_notebook_runs_and_shows_what_it_makes(tmp_path: Path) -> None:
    notebook = nbformat.read(TOUR, as_version=4)
    NotebookClient(notebook, kernel_name="python3", timeout=300).execute(cwd=str(tmp_path))
    shown = {
        each.source.splitlines()[-1]: output["data"]
        for each in notebook.cells
        for output in each.get("outputs", [])
        if output["output_type"] == "execute_result"
    }
    html = {line: data.get("text/html", "") for line, data in shown.items()}
    assert "train" in html["build"]
    assert html['build.head(3, split="train")'].count("<img src=") == 3
    assert "<b>mnist: pass</b>, 5,000 records in 8 shards" in html["report"]
    assert "<td>CRC002</td>" in html['build.check(only=["crc"])']
    assert "mnist@1.0.0" in html["first"]
    assert html["first.report()"].startswith("<iframe title=")
    assert "mnist@1.0.0 → mnist@2.0.0: 1 changed, major" in html["changes"]
    assert float(shown["accuracy"]["text/plain"]) >= 0.9  # by chance it is 0.1

"""Parents of another registry, and in very many shards."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from derived_support import STREET, Derived, pictures
from memory_support import PRINT_PEAK, on_linux

LABEL = "image/class/label"


def test_parents_may_be_in_another_registry(tmp_path: Path) -> None:
    there, here = Derived(tmp_path / "there"), Derived(tmp_path / "here")
    there.parent("street", pictures("s", STREET, 20, 4), labels={LABEL: STREET}, shards=2)
    settings = {"raw": str(there.folder)}
    build = here.build("child", "street@1.0.0", settings=settings, sample="60%")
    assert [each.reference for each in build.manifest.parents] == ["street@1.0.0"]
    street = there.rows("street")
    rows = here.rows("child")
    assert 0 < len(rows) < len(street)
    assert all(street[key] == row for key, row in rows.items())
    there.build("child", "street@1.0.0", sample="60%")
    assert there.registry["child"].built.manifest.content == build.manifest.content
    here.registry["child"].release("1.0.0", progress=False)
    assert here.registry.find("child@1.0.0").check(progress=False).status == "pass"
    # A dataset of the same name here is no parent of it.
    here.parent("street", pictures("other", STREET, 20, 4), labels={LABEL: STREET})
    again = here.build("child", "street@1.0.0", settings={**settings, "anew": True}, sample="60%")
    assert again.manifest.content == build.manifest.content


_BUILD = (
    """
import sys
import tfrecreg

registry = tfrecreg.open(sys.argv[1])
options = {"inputs": ["wide@1.0.0"], "sample": "50%"}
build = registry["child"].build(source="tfrecreg", options=options, progress=False, shards=3)
print(sum(each.records for each in build.manifest.splits))
"""
    + PRINT_PEAK
)


@on_linux
@pytest.mark.slow
def test_a_parent_of_a_thousand_shards(tmp_path: Path) -> None:
    made = Derived(tmp_path / "registry")
    rows = {"train": [{"name": f"k{n:05}", "n": n} for n in range(2400)]}
    made.parent("wide", rows, shards=1200)
    assert len(made.registry["wide"].built.manifest.shards) == 1200
    done = subprocess.run(
        [sys.executable, "-c", _BUILD, str(made.folder)],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    records, peak = map(int, done.stdout.split())
    assert 1000 < records < 1400
    assert peak < 300_000  # KiB; files and indexes of shards are not held open together
    assert len(made.rows("child")) == records

"""`tfrecreg site`."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def here(digits_registry: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(digits_registry)
    return digits_registry


@pytest.mark.medium
def test_it_says_what_it_wrote(cli, here: Path) -> None:
    done = cli("site", "public")
    assert (done.code, done.err) == (0, "")
    *targets, last = done.out.splitlines()
    assert targets == ["digits: pass, 0 findings", "digits@1.0.0: pass, 0 findings"]
    assert last.startswith("wrote public, 3 pages, ")


@pytest.mark.medium
def test_json_names_the_folder(cli, here: Path) -> None:
    document = cli("site", "public", "--json").json
    assert document["folder"] == str(here / "public")
    assert document["pages"] == 3
    assert document["targets"][0] == {"target": "digits", "status": "pass", "findings": 0}


def test_what_is_there_is_never_overwritten(cli, here: Path) -> None:
    done = cli("site", "raw")
    assert done.code == 2
    assert done.err == (
        "error: `raw` is not empty\n"
        "hint: name a folder that does not exist yet, or an empty one: a site never overwrites\n"
    )

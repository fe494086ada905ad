"""`tfrecreg site`."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.mark.medium
def test_json_names_the_folder(cli, here: Path) -> None:
    document = cli("site", "public", "--json").json
    assert document["folder"] == str(here / "public")
    assert document["pages"] == 3
    assert document["targets"][0] == {"target": "digits", "status": "pass", "findings": 0}

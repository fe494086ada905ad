"""Another repository takes a release by its number: `dvc artifacts get`, `dvc import`."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest
from shell_support import Shell, open_shell
from tests_support import flip, tree

from tfrecreg.cli.digits import write_digits
from tfrecreg.core.storage.local import LocalStorage

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("dvc") is None, reason="the extra `dvc` is missing"),
]


def released(shell: Shell, raw: Path, version: str, seed: int) -> dict[str, bytes]:
    """Build, release, commit, push and tag digits; the files of the release."""
    write_digits(LocalStorage(raw), train=60, test=20, seed=seed)
    shell(f"tfrecreg build digits --source mnist --raw {raw} --shards 2 --release {version}")
    shell("tfrecreg pipeline digits --artifacts")
    shell("git add .")
    shell(f"git commit --quiet --message {version}")
    shell("tfrecreg push")
    shell(f"tfrecreg tag digits@{version}")
    return tree(shell.root / "data/digits")


@pytest.mark.parametrize("below", ["", "some/registry"])
def test_another_repository_gets_and_imports_a_release(tmp_path: Path, below: str) -> None:
    top = open_shell(tmp_path, "first")
    top("git init --quiet --initial-branch=main")
    registry = top.at(top.root / below)
    registry.root.mkdir(parents=True, exist_ok=True)
    registry("tfrecreg init")
    registry(f"dvc remote add --default store {tmp_path / 'remote'}")
    one = released(registry, tmp_path / "raw", "1.0.0", seed=1)
    two = released(registry, tmp_path / "raw", "2.0.0", seed=2)
    assert one != two
    # All that another repository has is git and the remote.
    shutil.rmtree(registry.root / ".dvc/cache")
    shutil.rmtree(registry.root / "data/digits")

    second = top.at(tmp_path / "second")
    second.root.mkdir()
    second("git init --quiet")
    second("dvc init --quiet")
    name, tag = ("digits", "digits") if not below else (f"{below}:digits", f"{below}=digits")
    path = f"{below}/data/digits".removeprefix("/")

    second(f"dvc artifacts get ../first {name} --rev v1.0.0 --out got")
    assert tree(second.root / "got") == one
    if not below:
        assert "pass: 0 errors" in second("tfrecreg check got")
    second(f"dvc artifacts get ../first {name} --out newest")
    assert tree(second.root / "newest") == two

    second("mkdir data")
    second(f"dvc import ../first {path} --rev {tag}@v1.0.0 --out data/digits")
    assert tree(second.root / "data/digits") == one
    assert "pass: 0 errors" in second("tfrecreg check data/digits")
    assert f"rev: {tag}@v1.0.0" in (second.root / "data/digits.dvc").read_text()
    second(f"dvc update --rev {tag}@v2.0.0 data/digits.dvc")
    assert tree(second.root / "data/digits") == two
    if below:
        return  # what follows does not depend on the registry's folder
    assert "pass: 0 errors" in second("tfrecreg check data/digits")

    victim = second.root / "data/digits/digits-train.tfrecord-00001-of-00002"
    flip(victim, victim.stat().st_size // 2)
    said = second("tfrecreg check data/digits", expect=1)
    assert "error CRC002" in said
    assert f"{victim.name}, record " in said

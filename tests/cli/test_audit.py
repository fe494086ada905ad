"""`audit`: what it says of the releases of one branch, and of two together."""

from __future__ import annotations

from pathlib import Path

import pytest
from git_support import commit, git, start
from registry_support import put_next


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = start(tmp_path / "root")
    (root / "tfrecreg.toml").write_text("")
    first = put_next(root, "1.0.0")
    commit(root, "1.0.0")
    git(root, "switch", "--quiet", "--create", "work")
    put_next(root, "1.2.0", first)
    commit(root, "1.2.0")
    git(root, "switch", "--quiet", "main")
    put_next(root, "1.1.0", first)
    commit(root, "1.1.0")
    git(root, "switch", "--quiet", "work")
    monkeypatch.chdir(root)
    return root


def test_sound_releases_pass(cli, root: Path) -> None:
    done = cli("audit")
    assert (done.code, done.err) == (0, "")
    assert done.out == "the releases: 2 releases\npass: 0 errors, 0 warnings (registry)\n"


def test_a_fork_with_the_base_fails(cli, root: Path) -> None:
    done = cli("audit", "--base", "main")
    assert done.code == 1
    assert done.out == (
        "m 1.2.0 (minor after 1.0.0): no reason is known\n"
        "the releases, with those of main: 2 releases\n"
        "error REG005 forked-releases: 1.2.0 was made after 1.0.0, and 1.1.0 comes between "
        "them; 1.1.0 is on main\n"
        "    registry/m/1.2.0/manifest.json\n"
        "    hint: make one release again on top of the other, under the next version, and "
        "yank the wrong one\n"
        "fail: 1 error, 0 warnings (registry)\n"
    )
    found = cli("audit", "--base", "main", "--json").json
    assert (found["status"], found["summary"]["releases"]) == ("fail", 2)
    assert [each["code"] for each in found["findings"]] == ["REG005"]
    assert cli("audit", "--base", "main", "--fail-on", "never").code == 0

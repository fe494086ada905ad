"""Releases pass in a clone in which git converts line ends, as it does on Windows."""

from __future__ import annotations

from pathlib import Path

import pytest
from git_support import commit, git, start

ATTRIBUTES = "registry/.gitattributes"


@pytest.fixture
def committed(cli, raw: Path, registry: Path) -> Path:
    """A registry in git with `digits@1.0.0` and its build, and the current folder."""
    start(registry)
    made = ("--source", "mnist", "--raw", raw, "--shards", "2", "--release", "1.0.0")
    assert cli("build", "digits", *made).code == 0
    commit(registry)
    return registry


@pytest.fixture
def converted(committed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone of it whose text files end lines with CR LF, and the current folder."""
    clone = tmp_path / "clone"
    options = ("-c", "core.autocrlf=true", "--no-local", "--quiet")
    git(tmp_path, "clone", *options, str(committed), str(clone))
    assert b"\r\n" in (clone / "schemas/digits.pbtxt").read_bytes()
    monkeypatch.chdir(clone)
    return clone


def test_releases_are_as_they_were_committed(cli, committed: Path, converted: Path) -> None:
    done = cli("audit")
    assert done.code == 0, done.out
    for name in ("manifest.json", "schema.pbtxt"):
        path = f"registry/digits/1.0.0/{name}"
        assert (converted / path).read_bytes() == (committed / path).read_bytes()
    assert git(converted, "status", "--porcelain") == ""


def test_the_next_release_adds_what_an_older_registry_lacks(cli, committed: Path) -> None:
    own = b"*.json linguist-generated\n*.yanks.jsonl merge=union"
    (committed / ATTRIBUTES).write_bytes(own)
    (committed / "schemas").rename(committed / "my schemas")
    config = committed / "datasets/digits.toml"
    config.write_text(f'schema = "my schemas/digits.pbtxt"\n{config.read_text()}')
    assert cli("build", "digits", "--shards", "1", "--base", "none").code == 0
    done = cli("release", "digits")
    assert done.code == 0, done.err
    assert f"  git add registry/digits/1.0.1 {ATTRIBUTES} 'my schemas/digits.pbtxt'" in done.err
    assert (committed / ATTRIBUTES).read_bytes() == own + b"\n* -text\n"
    assert git(committed, "check-attr", "text", "registry/digits/1.0.1/manifest.json").endswith(
        "text: unset"
    )

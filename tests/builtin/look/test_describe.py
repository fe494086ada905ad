"""The facts of a version, as they go into the log of an experiment."""

from __future__ import annotations

import json
from pathlib import Path

from git_support import git

import tfrecreg


def test_a_release_is_described_by_its_manifest(digits_original: Path) -> None:
    release = tfrecreg.open(digits_original).find("digits@1.0.0")
    manifest = release.manifest
    shards = (digits_original / "data/digits").glob("*.tfrecord-*")
    facts = tfrecreg.open(digits_original).find("digits@latest").describe()
    assert facts == {
        "name": "digits",
        "version": "1.0.0",
        "reference": "digits@1.0.0",
        "content": manifest.content,
        "records": 260,
        "splits": {"test": 60, "train": 200},
        "bytes": sum(path.stat().st_size for path in shards),
        "schema": manifest.schema.blake3,
        "manifest": manifest.digest,
        "git_commit": None,
    }
    assert json.loads(json.dumps(facts)) == facts
    assert release.describe() == facts


def test_a_build_has_no_version(digits_original: Path) -> None:
    build = tfrecreg.open(digits_original).find("digits").describe()
    release = tfrecreg.open(digits_original).find("digits@1.0.0").describe()
    assert (build["version"], build["reference"], build["git_commit"]) == (None, "digits", None)
    assert build["content"] == release["content"]
    assert build["manifest"] != release["manifest"]


def test_the_commit_is_the_one_of_the_release(digits_registry: Path) -> None:
    git(digits_registry, "init", "-q")
    git(digits_registry, "commit", "-q", "--allow-empty", "-m", "before the release")
    registry = tfrecreg.open(digits_registry)
    release = registry["digits"].release("1.0.1")
    commit = git(digits_registry, "rev-parse", "HEAD")
    git(digits_registry, "commit", "-q", "--allow-empty", "-m", "after the release")
    facts = release.describe()
    assert facts["git_commit"] == commit


def test_bytes_that_are_elsewhere_are_not_needed(digits_registry: Path) -> None:
    before = tfrecreg.open(digits_registry).find("digits@1.0.0").describe()
    for shard in (digits_registry / "data/digits").iterdir():
        if shard.is_file():
            shard.unlink()
    assert tfrecreg.open(digits_registry).find("digits@1.0.0").describe() == before

"""Receipts stay with a build and its release, and become an in-toto statement."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3
from git_support import commit, start

from tfrecreg.builtin.export.intoto import STATEMENT_NAME
from tfrecreg.errors import ManifestError
from tfrecreg.operations.builds.data import build
from tfrecreg.operations.builds.parts.lines import json_line
from tfrecreg.operations.export.run import export
from tfrecreg.operations.origin import origin_of
from tfrecreg.operations.release import ReleaseRequest, release
from tfrecreg.registry.audit import audit
from tfrecreg.registry.lookup import resolve
from tfrecreg.registry.registry import open_registry


@pytest.fixture
def released(made):
    made.collect(parts_only=True, verify="1")
    release(made.registry, ReleaseRequest(name="digits", version="1.0.0"))
    return made


def receipts(site) -> Path:
    return Path(site.folder / "registry/registry/digits/1.0.0/receipts.jsonl.gz")


def test_a_release_takes_over_the_receipts_of_its_build(released) -> None:
    parts = origin_of(resolve(released.registry, "digits@1.0.0")).parts
    assert parts is not None
    assert [each.shard.path for each in parts.receipts] == [
        released.shard(split, number) for split in ("test", "train") for number in range(3)
    ]
    assert {each.made.part for each in parts.receipts if each.made} == {"1/1"}
    assert len(parts.verified) == 1
    assert audit(released.registry.dataset("digits")).issues == []


def test_earlier_receipts_can_be_read(released) -> None:
    """They have the SHA-256 of their shard and its index: both were compared then."""
    resolved = resolve(released.registry, "digits@1.0.0")
    sha256 = {entry.path: entry.sha256 for entry in resolved.manifest.shards}
    head, *lines = gzip.decompress(receipts(released).read_bytes()).splitlines(keepends=True)
    earlier = [json.loads(line) for line in lines]
    for each in earlier:
        assert not each["shard"]["sha256"]
        each["shard"]["sha256"] = sha256[each["shard"]["path"]]
        each["index"] = {"path": "x", "bytes": 1, "blake3": "0", "sha256": "0"}
        covered = {name: each[name] for name in each if name not in ("digest", "made")}
        each["digest"] = blake3(json_line(covered)).hexdigest()
    receipts(released).write_bytes(gzip.compress(head + b"".join(map(json_line, earlier))))
    parts = origin_of(resolve(released.registry, "digits@1.0.0")).parts
    assert parts is not None
    assert [each.shard for each in parts.receipts] == resolved.manifest.shards


@pytest.mark.parametrize("how", ["changed", "removed"])
def test_receipts_of_a_release_never_change(released, how: str) -> None:
    root = start(released.folder / "registry")
    commit(root)
    path = receipts(released)
    path.write_bytes(gzip.compress(b"{}")) if how == "changed" else path.unlink()
    (issue,) = audit(released.registry.dataset("digits")).issues
    assert issue.path == "registry/digits/1.0.0/receipts.jsonl.gz"
    assert issue.code.code == {"changed": "REG004", "removed": "REG002"}[how]


def test_receipts_change_no_digest(released, original_site: Path) -> None:
    root = released.folder / "plain"
    shutil.copytree(original_site / "whole", root)
    one = release(open_registry(root), ReleaseRequest(name="digits", version="1.0.0"))
    other = resolve(released.registry, "digits@1.0.0").manifest
    assert one.manifest.digest == other.digest
    assert origin_of(resolve(open_registry(root), "digits@1.0.0")).parts is None
    assert not (root / "registry/digits/1.0.0/receipts.jsonl.gz").exists()


def test_a_build_of_one_command_does_not_keep_the_receipts_of_another(made, original_site) -> None:
    made.collect()
    assert origin_of(resolve(made.registry, "digits")).parts is not None
    request = made.request(raw=str(original_site / "raw"), compression="gzip")
    build(made.registry, request)
    assert origin_of(resolve(made.registry, "digits")).parts is None
    release(made.registry, ReleaseRequest(name="digits", version="1.0.0"))
    assert not receipts(made).exists()


@pytest.mark.parametrize("how", ["garbage", "empty", "fewer", "other"])
def test_damaged_receipts_of_a_release_are_an_error(released, how: str) -> None:
    path = receipts(released)
    lines = gzip.decompress(path.read_bytes()).splitlines()
    head = json.loads(lines[0])
    data = {
        "garbage": b"garbage",
        "empty": gzip.compress(b""),
        "fewer": gzip.compress(b"\n".join(lines[:-1])),
        "other": gzip.compress(b"\n".join([json.dumps({**head, "manifest": "0"}).encode()])),
    }
    path.write_bytes(data[how])
    with pytest.raises(ManifestError, match=r"the receipts in `.*` cannot be used") as caught:
        origin_of(resolve(released.registry, "digits@1.0.0"))
    assert caught.value.hint == "restore the file from git"


def statement(site, reference: str = "digits@1.0.0") -> dict[str, Any]:
    export(site.registry, reference, site.folder / "out", to="intoto")
    found: dict[str, Any] = json.loads((site.folder / "out" / STATEMENT_NAME).read_text("ascii"))
    return found


def test_a_statement_has_every_file_and_how_it_was_made(released) -> None:
    made = statement(released)
    assert made["_type"] == "https://in-toto.io/Statement/v1"
    assert made["predicateType"] == "https://slsa.dev/provenance/v1"
    data = released.data / "digits"
    files = {path for path in data.rglob("*") if path.is_file()}
    assert {each["name"]: each["digest"]["sha256"] for each in made["subject"]} == {
        path.relative_to(data).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }
    definition, run = made["predicate"]["buildDefinition"], made["predicate"]["runDetails"]
    assert definition["externalParameters"]["source"] == "mnist"
    names = [each["name"] for each in run["byproducts"]]
    assert names[:3] == ["ledger", "gate", "plan"]
    assert names[3:] == [
        f"receipts/{released.shard(s, n)}" for s in ("test", "train") for n in range(3)
    ]


def test_the_address_of_the_project_is_that_of_its_metadata(released) -> None:
    tomli = pytest.importorskip("tomli", reason="it comes with the development environment")
    project = tomli.loads((Path(__file__).parents[4] / "pyproject.toml").read_text("utf-8"))
    made = statement(released)
    builder = made["predicate"]["runDetails"]["builder"]["id"]
    assert builder == project["project"]["urls"]["Repository"]


def test_a_build_without_parts_has_a_statement_too(original_site: Path, tmp_path: Path) -> None:
    registry = open_registry(original_site / "whole")
    export(registry, "digits", tmp_path / "out", to="intoto")
    made = json.loads((tmp_path / "out" / STATEMENT_NAME).read_text("ascii"))
    assert [each["name"] for each in made["predicate"]["runDetails"]["byproducts"]] == ["ledger"]

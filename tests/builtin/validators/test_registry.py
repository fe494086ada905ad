"""`check` of a release or a build, as far as releases and their history are concerned."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import msgspec
from check_support import document
from git_support import commit, git, start
from tests_support import flip, tree

from tfrecreg.cli.main import main
from tfrecreg.core.registry.manifest import Manifest, render_manifest, seal
from tfrecreg.core.registry.registry import Yank, open_registry
from tfrecreg.core.registry.transaction import transaction
from tfrecreg.core.values.reference import Version


def rewrite(root: Path, before: bytes, after: bytes) -> None:
    """Change a release's manifest, and give it the digest of what it says then."""
    path = root / "registry/digits/1.0.0/manifest.json"
    data = path.read_bytes()
    changed = msgspec.json.decode(data.replace(before, after), type=Manifest)
    path.write_bytes(render_manifest(seal(changed)))
    assert path.read_bytes() != data


def codes(found) -> list[str]:
    return [each["code"] for each in found["findings"]]


def test_a_sound_release_passes_and_so_does_its_build(digits_registry: Path) -> None:
    for target in ("digits@1.0.0", "digits"):
        found = document([target], digits_registry, only=("registry",))
        assert (found["status"], found["findings"]) == ("pass", [])
        assert found["validators"] == ["registry"]
        assert found["measures"] == {}


def test_a_manifest_that_was_rewritten_to_fit_other_shards_is_found(digits_registry: Path) -> None:
    """Whoever writes shards anew and all of the manifest's digests cannot write the build's."""
    shard = digits_registry / "data/digits/digits-test.tfrecord-00000-of-00002"
    manifest = open_registry(digits_registry).dataset("digits").release_manifest(Version(1, 0, 0))
    entry = next(each for each in manifest.shards if each.path == shard.name)
    rewrite(digits_registry, entry.blake3.encode(), b"0" * 64)
    found = document(["digits@1.0.0"], digits_registry, only=("registry",))
    assert codes(found) == ["REG002"]
    (finding,) = found["findings"]
    assert finding["message"].startswith("it differs from the build that it names")
    assert finding["locations"] == [{"shard": "registry/digits/1.0.0/manifest.json"}]
    assert finding["fingerprint"] == "REG002:digits:::registry/digits/1.0.0/manifest.json"
    assert codes(document(["digits"], digits_registry, only=("registry",))) == ["REG002"]


def test_what_concerns_another_release_is_not_told_of_this_one(digits_registry: Path) -> None:
    folder = digits_registry / "registry/digits"
    shutil.copytree(folder / "1.0.0", folder / "3.0.0")
    assert codes(document(["digits@1.0.0"], digits_registry, only=("registry",))) == []
    assert codes(document(["digits"], digits_registry, only=("registry",))) == ["REG002"]


def test_a_second_commit_is_found(digits_registry: Path) -> None:
    start(digits_registry)
    commit(digits_registry, "the release")
    path = digits_registry / "registry/digits/1.0.0/schema.pbtxt"
    before = path.read_bytes()
    path.write_bytes(before + b"# more\n")
    second = commit(digits_registry, "quietly")
    assert main(["-C", str(digits_registry), "check", "digits@1.0.0"]) == 2  # its schema is refused
    found = document(["digits"], digits_registry, only=("registry",))
    assert codes(found) == ["REG002"]
    assert second[:12] in found["findings"][0]["message"]


def test_a_withdrawn_release_is_warned_of(digits_registry: Path) -> None:
    yank = Yank(created="2026-01-01T00:00:00Z", by="ada", reason="labels \x1b[31m are wrong")
    with transaction(open_registry(digits_registry).dataset("digits")) as change:
        change.yank(Version(1, 0, 0), yank)
    found = document(["digits@1.0.0"], digits_registry, only=("registry",))
    assert (found["status"], codes(found)) == ("pass", ["REG007"])
    assert found["findings"][0]["severity"] == "warning"
    assert found["findings"][0]["message"] == (
        "yanked on 2026-01-01T00:00:00Z by ada: labels \\x1b[31m are wrong"
    )
    assert codes(document(["digits"], digits_registry, only=("registry",))) == []


def test_a_list_of_withdrawals_that_cannot_be_read_is_found(digits_registry: Path) -> None:
    path = digits_registry / "registry/digits/1.0.0.yanks.jsonl"
    path.write_text("<<<<<<< HEAD\n")
    found = document(["digits@1.0.0"], digits_registry, only=("registry",))
    assert codes(found) == ["REG008"]
    assert found["findings"][0]["locations"] == [{"shard": "registry/digits/1.0.0.yanks.jsonl"}]


def test_a_shallow_clone_says_what_it_does_not_know(digits_registry: Path, tmp_path: Path) -> None:
    start(digits_registry)
    commit(digits_registry, "the release")
    commit(digits_registry, "more")
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{digits_registry}", "clone")
    # The bytes are in no git repository.
    shutil.copytree(digits_registry / "versions/digits", tmp_path / "clone/versions/digits")
    found = document(["digits@1.0.0"], tmp_path / "clone", only=("registry",))
    assert found["status"] == "pass"
    assert found["measures"]["registry.history"].startswith("a shallow clone: ")


def test_what_lies_elsewhere_is_of_no_registry(digits_registry: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(digits_registry / "data/digits", tmp_path / "copy")
    for what in ("the folder does", "bare files do"):
        found = document([copy], None)
        reasons = {each["validator"]: each["reason"] for each in found["skipped"]}
        assert reasons["registry"] == f"{what} not belong to a registry"
        for name in ("manifest.json", "ledger.jsonl"):
            (copy / name).unlink(missing_ok=True)


def test_looking_changes_nothing_and_reuses_what_was_read(digits_registry: Path) -> None:
    for path in digits_registry.rglob("*.tfrecord-*"):
        os.utime(path, (0, 0))  # what was written just now is not trusted
    before = tree(digits_registry, ignore=(".tfrecreg",))
    document(["digits@1.0.0"], digits_registry, cached=True)
    found = document(["digits@1.0.0"], digits_registry, cached=True)
    assert tree(digits_registry, ignore=(".tfrecreg",)) == before
    assert found["summary"]["cached"] == 4


def test_damage_to_shards_is_not_its_business(digits_registry: Path) -> None:
    flip(digits_registry / "data/digits/digits-test.tfrecord-00000-of-00002", 40)
    assert codes(document(["digits"], digits_registry, only=("registry",))) == []

"""`repair`: the original bytes again, or an error and nothing changed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from check_support import document
from tests_support import flip, tree

from tfrecreg.builtin.python_data.build import build
from tfrecreg.builtin.repair.run import RepairResult, repair
from tfrecreg.cli.digits import write_digits
from tfrecreg.core.build.request import BuildRequest
from tfrecreg.core.build.sources.interface import Item, Remark, Skipped, Source
from tfrecreg.core.plugins.manager import plugins
from tfrecreg.core.plugins.records import SourceRecord
from tfrecreg.core.registry.init import init
from tfrecreg.core.registry.manifest import parse_manifest, render_manifest, seal
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.storage import renames
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import ManifestError, RefusedError, StorageError, UsageError
from tfrecreg.core.values.shards import ShardPolicy

FIRST = "digits-train.tfrecord-00000-of-00002"
SECOND = "digits-train.tfrecord-00001-of-00002"


def data(root: Path) -> Path:
    return root / "data/digits"


def repaired(root: Path, reference: str = "digits") -> RepairResult:
    return repair(open_registry(root), reference)


def cut(path: Path, at: int) -> None:
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content[:at])


def zero(path: Path, begin: int, end: int) -> None:
    content = bytearray(path.read_bytes())
    content[begin:end] = bytes(end - begin)
    path.unlink()
    path.write_bytes(bytes(content))


@pytest.mark.parametrize(
    ("damage", "taken"),
    [
        (lambda path: flip(path, 5100), 99),  # data of one record
        (lambda path: flip(path, 0), 99),  # the length of the first
        (lambda path: path.unlink(), 0),
        (lambda path: path.write_bytes(b""), 0),
        (lambda path: path.write_text("version https://git-lfs"), 0),
        (lambda path: path.write_bytes(path.with_name(SECOND).read_bytes()), 0),
        (lambda path: cut(path, 20_000), None),
        (lambda path: zero(path, 3000, 9000), None),
    ],
)
def test_shard_comes_back_to_the_byte(
    digits_registry: Path, damage: Callable[[Path], None], taken: int | None
) -> None:
    before = tree(digits_registry)
    path = data(digits_registry) / FIRST
    damage(path)
    result = repaired(digits_registry)
    assert tree(digits_registry, ignore=(".tfrecreg",)) == {
        name: content for name, content in before.items() if not name.startswith(".tfrecreg/")
    }
    (shard,) = result.shards
    assert shard.entry.path == FIRST
    assert shard.taken + shard.made == 100
    assert taken is None or shard.taken == taken
    assert shard.made > 0
    assert document(["digits"], digits_registry)["status"] == "pass"
    manifest = parse_manifest((path.parent / "manifest.json").read_bytes(), "manifest.json")
    assert result.digest == manifest.digest
    assert not (digits_registry / ".tfrecreg/stage/digits").exists() or not any(
        (digits_registry / ".tfrecreg/stage/digits").iterdir()
    )


def test_all_shards_at_once(digits_registry: Path) -> None:
    before = tree(data(digits_registry))
    for path in data(digits_registry).glob("digits-*"):
        path.unlink()
    result = repaired(digits_registry)
    assert len(result.shards) == 4
    assert tree(data(digits_registry)) == before


def test_release_is_repaired_where_its_bytes_are(digits_registry: Path) -> None:
    before = tree(digits_registry / "versions/digits/1.0.0")
    build_before = tree(data(digits_registry))
    # Another build is in the build's place, so the release's bytes are those in `versions/`.
    shutil.rmtree(data(digits_registry))
    flip(digits_registry / "versions/digits/1.0.0" / FIRST, 5100)
    result = repaired(digits_registry, "digits@1.0.0")
    assert result.folder == "versions/digits/1.0.0"
    assert tree(digits_registry / "versions/digits/1.0.0") == before
    assert not data(digits_registry).exists()
    assert build_before == before


def test_release_that_the_build_still_is_is_repaired_there(digits_registry: Path) -> None:
    before = tree(data(digits_registry))
    flip(data(digits_registry) / FIRST, 5100)
    result = repaired(digits_registry, "digits@latest")
    assert (result.folder, result.reference) == ("data/digits", "digits@1.0.0")
    assert tree(data(digits_registry)) == before


def test_other_files_come_back(digits_registry: Path) -> None:
    before = tree(data(digits_registry))
    (data(digits_registry) / "labels.json").write_text("{}")
    (data(digits_registry) / "ledger.jsonl").unlink()
    (data(digits_registry) / "schema.pbtxt").write_text("")
    (data(digits_registry) / f"index/{FIRST}.index").unlink()
    result = repaired(digits_registry)
    assert result.shards == ()
    names = [f"index/{FIRST}.index", "labels.json", "ledger.jsonl", "schema.pbtxt"]
    assert sorted(result.files) == names
    assert tree(data(digits_registry)) == before


def test_a_schema_that_is_nowhere_else_cannot_come_back(digits_registry: Path) -> None:
    (data(digits_registry) / "schema.pbtxt").unlink()
    (digits_registry / "schemas/digits.pbtxt").write_text("")
    shutil.rmtree(digits_registry / "registry")
    with pytest.raises(RefusedError, match=r"`schema\.pbtxt` is missing and cannot be rebuilt"):
        repaired(digits_registry)


def test_manifest_beside_a_release_comes_back(digits_registry: Path) -> None:
    before = tree(data(digits_registry))
    shutil.rmtree(digits_registry / "versions")
    (data(digits_registry) / "manifest.json").write_text("{")
    assert repaired(digits_registry, "digits@1.0.0").files == ("manifest.json",)
    assert tree(data(digits_registry)) == before


def test_sound_files_and_files_that_no_manifest_lists_stay(digits_registry: Path) -> None:
    place = data(digits_registry)
    folder, shard = place.stat().st_ino, (place / FIRST.replace("train", "test")).stat().st_ino
    result = repaired(digits_registry)
    assert (result.shards, result.files) == ((), ())
    assert place.stat().st_ino == folder
    (place / "notes.txt").write_text("mine")
    links = {"previews": Path(".."), "nowhere": Path("gone"), "shards/first": Path(FIRST)}
    (place / "shards").mkdir()
    for name, target in links.items():
        (place / name).symlink_to(target)
    os.mkfifo(place / "pipe")
    flip(place / FIRST, 5100)
    repaired(digits_registry)
    assert (place / "notes.txt").read_text() == "mine"
    assert {name: (place / name).readlink() for name in links} == links
    assert (place / "pipe").is_fifo()
    assert (place / FIRST.replace("train", "test")).stat().st_ino == shard


@pytest.fixture
def compressed(tmp_path: Path) -> Path:
    """A build in gzip, large enough for several members a shard; not released."""
    root = tmp_path / "compressed"
    write_digits(LocalStorage(root / "raw"), train=9000, test=20, seed=1)
    init(root, with_dvc=False)
    request = BuildRequest(
        name="digits",
        source="mnist",
        raw=str(root / "raw"),
        policy=ShardPolicy(shards=1),
        compression="gzip",
    )
    build(open_registry(root), request)
    return root


@pytest.mark.medium
def test_gzip_comes_back_to_the_byte(compressed: Path) -> None:
    before = tree(data(compressed))
    (path,) = data(compressed).glob("digits-train*")
    flip(path, path.stat().st_size // 2, 0xFF)
    (shard,) = repaired(compressed).shards
    assert tree(data(compressed)) == before
    assert 2000 < shard.taken < 9000


class TestWithoutTheRawData:
    @pytest.fixture
    def bare(self, digits_registry: Path) -> Path:
        shutil.rmtree(digits_registry / "raw")
        return digits_registry

    def test_damage_that_cost_no_record_is_repaired(self, bare: Path) -> None:
        before = tree(data(bare))
        with (data(bare) / FIRST).open("ab") as file:
            file.write(b"garbage")
        (shard,) = repaired(bare).shards
        assert (shard.taken, shard.made) == (100, 0)
        assert tree(data(bare)) == before

    def test_what_is_lost_is_not_made_up(self, bare: Path) -> None:
        flip(data(bare) / FIRST, 5100)
        before = tree(bare, ignore=(".tfrecreg",))
        with pytest.raises(UsageError, match=r"the raw data `.*raw` does not exist"):
            repaired(bare)
        assert tree(bare, ignore=(".tfrecreg",)) == before

    def test_they_may_be_elsewhere(self, bare: Path, tmp_path: Path) -> None:
        write_digits(LocalStorage(tmp_path / "moved"), train=200, test=60, seed=1)
        before = tree(data(bare))
        flip(data(bare) / FIRST, 5100)
        before_flip = before[FIRST]
        repair(open_registry(bare), "digits", raw=str(tmp_path / "moved"))
        assert (data(bare) / FIRST).read_bytes() == before_flip


def refused(root: Path, message: str, hint: str = "", reference: str = "digits") -> None:
    before = tree(root, ignore=(".tfrecreg",))
    with pytest.raises(RefusedError) as caught:
        repaired(root, reference)
    assert message in caught.value.message
    assert "nothing was changed" in caught.value.message or "index" in caught.value.message
    assert hint in caught.value.hint
    assert tree(root, ignore=(".tfrecreg",)) == before


def test_raw_data_that_changed_are_refused(digits_registry: Path) -> None:
    shutil.rmtree(digits_registry / "raw")
    write_digits(LocalStorage(digits_registry / "raw"), train=200, test=60, seed=2)
    (data(digits_registry) / FIRST).unlink()
    refused(
        digits_registry,
        f"`digits` cannot be repaired, and nothing was changed: the rebuilt `{FIRST}` has other "
        "bytes; its first wrong record is `",
        "it was made from 4 raw files with ",
    )


def test_raw_data_that_lost_items_are_refused(
    digits_registry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = plugins().load(SourceRecord, "mnist")
    items = kind.items

    def fewer(self: Source) -> Iterator[Item | Skipped | Remark]:
        for item in items(self):
            if not isinstance(item, Item) or (item.split, item.key) != ("train", "00111"):
                yield item

    monkeypatch.setattr(kind, "items", fewer)
    (data(digits_registry) / FIRST).unlink()
    refused(
        digits_registry,
        "its first wrong record is `00111`: the raw data no longer have this item",
        "restore these files and versions, or the shards from DVC or a backup",
    )


def reseal(root: Path, **changes: object) -> None:
    """Another manifest for the build, as if it had been made so."""
    path = data(root) / "manifest.json"
    manifest = parse_manifest(path.read_bytes(), "manifest.json")
    path.write_bytes(render_manifest(seal(replace(manifest, **changes))))  # type: ignore[arg-type]


@pytest.mark.medium
def test_what_it_was_made_with_is_told(compressed: Path) -> None:
    path = data(compressed) / "manifest.json"
    manifest = parse_manifest(path.read_bytes(), "manifest.json")
    (train,) = (entry for entry in manifest.shards if entry.split == "train")
    others = [entry for entry in manifest.shards if entry is not train]
    source = replace(manifest.source, version="0.0.1")
    reseal(
        compressed,
        # As if another zlib had made other bytes of the same stream.
        shards=[*others, replace(train, blake3="0" * 64)],
        codecs={**manifest.codecs, "zlib": "1.0"},
        source=source,
    )
    refused(
        compressed,
        "` has other bytes",
        f"with {source.distribution} 0.0.1, zlib 1.0: ",
    )


def test_ledger_that_said_something_is_not_made_up(digits_registry: Path) -> None:
    path = data(digits_registry) / "manifest.json"
    manifest = parse_manifest(path.read_bytes(), "manifest.json")
    files = [
        replace(entry, blake3="0" * 64) if entry.path == "ledger.jsonl" else entry
        for entry in manifest.files
    ]
    reseal(digits_registry, files=files)
    refused(digits_registry, "`ledger.jsonl` is missing", "or run `tfrecreg build digits`")


def test_adopted_build_has_no_source_to_repair_from(digits_registry: Path) -> None:
    path = data(digits_registry) / "manifest.json"
    manifest = parse_manifest(path.read_bytes(), "manifest.json")
    reseal(digits_registry, source=replace(manifest.source, name=""))
    (data(digits_registry) / FIRST).unlink()
    with pytest.raises(UsageError, match="the records of `digits` again") as caught:
        repaired(digits_registry)
    assert "`tfrecreg salvage`" in caught.value.hint


@pytest.mark.parametrize("shard", [False, True])
def test_lost_index_is_refused(digits_registry: Path, shard: bool) -> None:
    shutil.rmtree(digits_registry / ".tfrecreg/cache")
    if shard:
        (data(digits_registry) / FIRST).unlink()
    (data(digits_registry) / f"index/{FIRST}.index").unlink()
    shutil.rmtree(digits_registry / "versions/digits")
    refused(
        digits_registry,
        f"the index of `{FIRST}` is lost, so the contents of the shard are unknown",
        "`tfrecreg build digits` makes all files again",
    )


def test_release_whose_manifest_disagrees_with_its_build_is_refused(digits_registry: Path) -> None:
    path = digits_registry / "registry/digits/1.0.0/manifest.json"
    manifest = parse_manifest(path.read_bytes(), "manifest.json")
    assert manifest.release is not None
    # The bytes are found by what the release says of its build, and are those of another one.
    other = replace(manifest, content="0" * 64)
    path.write_bytes(render_manifest(seal(other)))
    with pytest.raises(ManifestError, match="does not match its build"):
        repaired(digits_registry, "digits@1.0.0")


def test_disk_that_fails_while_it_is_written_changes_nothing(
    digits_registry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flip(data(digits_registry) / FIRST, 5100)
    before = tree(digits_registry, ignore=(".tfrecreg",))
    monkeypatch.setattr(
        LocalStorage,
        "link",
        lambda self, source, target, **more: self.create(target).close(),
    )
    with pytest.raises(StorageError, match="were written for `data/digits` do not match the"):
        repaired(digits_registry)
    assert tree(digits_registry, ignore=(".tfrecreg",)) == before


def test_exchange_that_was_killed_halfway_is_completed(
    digits_registry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without an exchange in the kernel, and killed when the old folder is out of the way."""
    before = tree(data(digits_registry))
    flip(data(digits_registry) / FIRST, 5100)
    monkeypatch.setattr(renames, "_renameat2", lambda *arguments: False)
    rename = os.rename

    class KilledError(BaseException):
        pass

    def killed(source: str, target: str) -> None:
        if target.endswith("data/digits"):
            raise KilledError
        rename(source, target)

    monkeypatch.setattr(os, "rename", killed)
    # Nothing can be cleaned up after a kill.
    remove = LocalStorage.remove
    monkeypatch.setattr(LocalStorage, "remove", lambda self, path: None)
    with pytest.raises(KilledError):
        repaired(digits_registry)
    assert not data(digits_registry).exists()
    monkeypatch.setattr(os, "rename", rename)
    monkeypatch.setattr(LocalStorage, "remove", remove)
    repaired(digits_registry)
    assert tree(data(digits_registry)) == before

"""`tfrecreg salvage` as a user calls it: what it prints, what it refuses, what it leaves alone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from salvage_support import Made, filler, make, put
from tests_support import flip, tree

from tfrecreg.core.storage.local import LocalReader, LocalStorage
from tfrecreg.core.values.errors import StorageError

FIRST = "digits-train.tfrecord-00000-of-00002"


@pytest.fixture
def made() -> Made:
    return make([filler(number) for number in range(20)])


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, away from every registry."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_was_lost_is_told(cli: Any, here: Path, made: Made) -> None:
    data = bytearray(made.data)
    data[550] ^= 1
    data[1000] ^= 1
    put(here, bytes(data), made.index)
    done = cli("salvage", "x.tfrecord", "--output", "out")
    assert done.code == 0
    assert done.err == ""
    assert done.out.splitlines() == [
        "x.tfrecord: salvaged, 18 records kept, 2 lost",
        "    CRC002 record 7, offset 532, 76 B: data checksum should be 0xa988a236, found "
        "0x0cda8d5d",
        "    CRC002 record 13, offset 988, 76 B: data checksum should be 0x6d32c32c, found "
        "0x249c1dfb",
        "    lost keys: k7, k13",
        f"written: {here}/out",
        f"marked: `tfrecreg check` finds SHD009, see {here}/out/salvage.json",
    ]


@pytest.mark.parametrize("folder", ["shards", "shards/..", "link"])
def test_an_output_in_the_folder_that_is_named_is_refused(
    cli: Any, here: Path, made: Made, folder: str
) -> None:
    (here / "shards").mkdir()
    (here / "link").symlink_to("shards")
    put(here / "shards", made.data)
    before = tree(here)
    done = cli("salvage", folder, "--output", "shards/rescued")
    assert done.code == 2
    message = f"error: `{here}/shards/rescued` is in the folder of the originals"
    assert done.err.splitlines()[0] == message
    assert tree(here) == before
    assert cli("salvage", "shards", "--output", "rescued").code == 0


@pytest.mark.parametrize("named", ["digits", ".", "digits/*.tfrecord-*"])
def test_shards_that_a_manifest_in_the_folder_lists_are_missed(
    cli: Any, here: Path, digits_original: Path, named: str
) -> None:
    shutil.copytree(digits_original / "data/digits", here / "digits")
    (here / "digits" / FIRST).unlink()
    out = here.parent / f"{here.name}-out"
    done = cli("salvage", named, "--output", out)
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    if "*" in named:  # a glob names files
        assert not any(FIRST in line for line in lines)
        return
    at = lines.index(f"{FIRST}: missing, 0 records kept, 100 lost")
    assert lines[at + 1].startswith("    lost keys: ")
    assert lines[at + 1].endswith(" and 95 more")
    assert sum("sound" in line for line in lines) == 3
    report = json.loads((out / "salvage.json").read_bytes())
    assert [each["status"] for each in report["shards"]].count("missing") == 1


def test_json_is_the_report_and_where_it_is(cli: Any, here: Path, made: Made) -> None:
    put(here, made.data[:-1], made.index)
    found = cli("salvage", "x.tfrecord", "--output", "out", "--json").json
    assert found["format_version"] == 1
    assert found.pop("output") == str(here / "out")
    assert found.pop("passed") == 0
    assert found == json.loads((here / "out" / "salvage.json").read_bytes())
    assert found["summary"] == {"shards": 1, "kept": 19, "repaired": 0, "lost": 1, "exact": True}
    (shard,) = found["shards"]
    assert shard["lost_keys"] == ["k19"]
    assert shard["cuts"][0]["code"] == "CRC003"


class TestReference:
    def test_means_its_damaged_shards(self, cli: Any, digits_registry: Path, here: Path) -> None:
        shard = digits_registry / "data/digits" / FIRST
        flip(shard, 5000)
        (digits_registry / "data/digits/digits-test.tfrecord-00001-of-00002").unlink()
        before = tree(digits_registry)
        done = cli("-C", digits_registry, "salvage", "digits", "--output", "out", "--json")
        assert done.code == 0
        assert tree(digits_registry) == before
        found = done.json
        assert found["passed"] == 2
        damaged, missing = found["shards"]
        assert (damaged["name"], damaged["status"], damaged["kept"]) == (FIRST, "salvaged", 99)
        assert (missing["status"], missing["lost"], len(missing["lost_keys"])) == (
            "missing",
            30,
            30,
        )
        assert sorted(tree(here / "out")) == [FIRST, f"{FIRST}.quarantine", "salvage.json"]

    def test_that_is_whole_leaves_nothing_to_do(
        self, cli: Any, digits_registry: Path, here: Path
    ) -> None:
        done = cli("-C", digits_registry, "salvage", "digits@1.0.0", "--output", "out")
        assert (done.code, done.out.splitlines()) == (
            0,
            [
                "4 shards skipped: the bytes match the manifest",
                "nothing to salvage; nothing was written",
            ],
        )
        assert not (here / "out").exists()

    def test_manifest_counts_where_the_index_is_gone(
        self, cli: Any, digits_registry: Path, here: Path
    ) -> None:
        build = digits_registry / "data/digits"
        data = (build / FIRST).read_bytes()
        (build / FIRST).write_bytes(data[: len(data) // 2])
        shutil.rmtree(build / "index")
        (shard,) = cli(
            "-C", digits_registry, "salvage", "digits", "--output", "out", "--json"
        ).json["shards"]
        assert (shard["kept"] + shard["lost"], shard["exact"]) == (100, True)
        assert shard["lost_keys"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("x.tfrecord", "--output", "full"), "`full` is not empty"),
        (("x.tfrecord", "--output", "file"), "`file` is not a folder"),
        (
            ("x.tfrecord", "full/x.tfrecord", "--output", "out"),
            "`x.tfrecord` and `full/x.tfrecord` would become the same file",
        ),
    ],
)
def test_what_cannot_be_done_is_refused(
    cli: Any, here: Path, made: Made, arguments: tuple[str, ...], message: str
) -> None:
    put(here, made.data)
    (here / "full").mkdir()
    put(here / "full", made.data)
    (here / "file").write_text("x")
    before = tree(here)
    done = cli("salvage", *arguments)
    assert done.code == 2
    assert message in done.err
    assert tree(here) == before


def test_what_is_no_tfrecord_is_refused(cli: Any, here: Path) -> None:
    (here / "x.tfrecord").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    done = cli("salvage", "x.tfrecord", "--output", "out")
    assert done.code == 1
    assert "`x.tfrecord` is not a TFRecord: no valid record in" in done.err
    assert "a git-LFS pointer" in done.err
    assert not (here / "out").exists()


def refuse_to_read(monkeypatch: pytest.MonkeyPatch, name: str, at: int) -> None:
    inner = LocalReader.read_at

    def read_at(self: LocalReader, start: int, length: int) -> bytes:
        if self.path.endswith(name) and start + length > at:
            raise StorageError(f"cannot read `{self.path}`: Input/output error")
        return inner(self, start, length)

    monkeypatch.setattr(LocalReader, "read_at", read_at)


def test_nothing_that_can_be_read_leaves_nothing(
    cli: Any, here: Path, made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(here, made.data * 4000)
    refuse_to_read(monkeypatch, "/x.tfrecord", 3 << 20)
    done = cli("salvage", "x.tfrecord", "--output", "out")
    assert done.code == 3
    assert "nothing was salvaged: cannot read" in done.err
    assert sorted(each.name for each in here.iterdir()) == ["x.tfrecord"]


def test_disk_that_is_full_leaves_nothing(
    cli: Any, here: Path, made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(here, made.data)

    def create(self: LocalStorage, path: str, **more: Any) -> Any:
        raise StorageError(f"cannot write `{path}`: No space left on device", hint="free some")

    monkeypatch.setattr(LocalStorage, "create", create)
    done = cli("salvage", "x.tfrecord", "--output", "out")
    assert (done.code, "No space left" in done.err) == (3, True)
    assert sorted(each.name for each in here.iterdir()) == ["x.tfrecord"]

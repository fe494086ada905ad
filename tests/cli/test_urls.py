"""Commands that read URLs say of them what they say of the same files on a disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests_support import flip, tree

import tfrecreg
from tfrecreg.core.values.errors import DamagedRecordError, RefusedError

SAME = "; a second read of the store gave the same bytes"


@pytest.fixture
def lake(memory: Any, digits_registry: Path, tmp_path: Path, monkeypatch: Any) -> Path:
    """The current folder: `build`, and `damaged`, which has one flipped bit; both are in
    `memory://lake/`, too.
    """
    here = tmp_path / "lake"
    (digits_registry / "data").rename(here)
    (here / "digits").rename(here / "build")
    (here / "damaged").mkdir()
    for path in sorted((here / "build").glob("digits-test*")):
        (here / "damaged" / path.name).write_bytes(path.read_bytes())
    flip(here / "damaged/digits-test.tfrecord-00001-of-00002", 1000)
    memory.put(str(here), "/lake", recursive=True)
    monkeypatch.chdir(here)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return here


def alike(said: str) -> str:
    """What a command says of a URL, as it says it of a path."""
    return said.replace("memory://lake/", "").replace(SAME, "")


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "--json", "@damaged"),
        ("check", "--json", "@damaged/digits-test*"),
        ("check", "--json", "@build/digits-train.tfrecord@2"),
        ("check", "--json", "@build/digits-train.tfrecord-00000-of-00002"),
        ("check", "@build/**/digits-*"),
        ("digest", "@build/digits-*-of-00002"),
        ("digest", "@damaged/digits-test.tfrecord-00000-of-00002"),
        ("head", "-n", "3", "@damaged"),
        ("head", "--json", "@build/digits-test.tfrecord-00000-of-00002", "--at", "7"),
        ("schema", "infer", "@build/digits-test*"),
    ],
    ids=" ".join,
)
def test_a_url_is_read_as_a_path(cli: Any, lake: Path, arguments: tuple[str, ...]) -> None:
    local = cli(*(each.replace("@", "", 1) if each[0] == "@" else each for each in arguments))
    remote = cli(
        *(each.replace("@", "memory://lake/", 1) if each[0] == "@" else each for each in arguments)
    )
    out = local.out.replace(f"{lake}/", "")
    assert (remote.code, alike(remote.out), alike(remote.err)) == (local.code, out, local.err)


def test_damage_is_read_a_second_time(cli: Any, lake: Path) -> None:
    done = cli("check", "memory://lake/damaged", "--json")
    assert done.code == 1
    (finding,) = json.loads(done.out)["findings"]
    (place,) = finding["locations"]
    assert finding["code"] == "CRC002"
    assert place["shard"] == "memory://lake/damaged/digits-test.tfrecord-00001-of-00002"
    assert place["detail"].endswith(SAME)


def test_a_folder_with_a_manifest_is_a_build(cli: Any, lake: Path, memory: Any) -> None:
    done = cli("check", "memory://lake/build", "--json")
    document = json.loads(done.out)
    assert (done.code, document["status"]) == (0, "pass")
    assert document["summary"]["records"] == 260
    memory.rm("/lake/build/digits-train.tfrecord-00001-of-00002")
    done = cli("check", "memory://lake/build/", "--json")
    assert done.code == 1
    assert "SHD001" in [each["code"] for each in json.loads(done.out)["findings"]]
    assert cli("digest", "memory://lake/build").code == 1


def test_a_build_is_compared_with_a_release(
    cli: Any, lake: Path, digits_original: Path, memory: Any
) -> None:
    done = cli("-C", digits_original, "diff", "digits@1.0.0", "memory://lake/build", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["same"] is True


def test_damaged_shards_are_salvaged(cli: Any, lake: Path, memory: Any) -> None:
    local = cli("salvage", "damaged", "--output", "from-disk")
    remote = cli("salvage", "memory://lake/damaged", "--output", "from-url")
    assert remote.code == local.code == 0, remote.err
    for path in (lake / "from-disk").glob("digits*"):
        assert (lake / "from-url" / path.name).read_bytes() == path.read_bytes()


def test_salvage_takes_keys_from_the_index_beside_a_shard(
    cli: Any, lake: Path, memory: Any
) -> None:
    name = "build/digits-test.tfrecord-00000-of-00002"
    flip(lake / name, 1000)
    memory.pipe(f"/lake/{name}", (lake / name).read_bytes())
    local = cli("salvage", name, "--output", "from-disk", "--json")
    remote = cli("salvage", f"memory://lake/{name}", "--output", "from-url", "--json")
    assert remote.code == local.code == 0, remote.err
    assert alike(remote.out).replace("from-url", "from-disk") == local.out
    assert "unknown without an index" not in cli("salvage", name, "--output", "again").out


def test_a_data_source_reads_by_number(lake: Path) -> None:
    local = tfrecreg.data_source("build", "train", raw=True)
    remote = tfrecreg.data_source("memory://lake/build", "train", raw=True)
    numbers = np.random.default_rng(1).integers(len(local), size=50).tolist()
    assert remote.__getitems__(numbers) == local.__getitems__(numbers)
    assert list(remote) == list(local)
    by_files = tfrecreg.data_source("memory://lake/build/digits-train*", raw=True)
    assert list(by_files) == list(local)


def test_offsets_are_kept_while_the_file_is_the_same(
    lake: Path, memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "/lake/damaged/digits-test.tfrecord-00000-of-00002"
    path = f"memory:/{name}"
    monkeypatch.setattr("tfrecreg.core.records.reading.offsets._RACY_NS", 0)
    expected = list(tfrecreg.data_source(path, raw=True))
    (kept,) = (tmp_path / "cache/tfrecreg/offsets").iterdir()
    stamp = kept.stat().st_mtime_ns
    assert list(tfrecreg.data_source(path, raw=True)) == expected
    assert kept.stat().st_mtime_ns == stamp
    memory.pipe(name, memory.cat(name) + memory.cat(name))
    assert list(tfrecreg.data_source(path, raw=True)) == [*expected, *expected]


def test_damage_in_a_data_source_is_named(lake: Path) -> None:
    source = tfrecreg.data_source("memory://lake/damaged/", raw=True)
    with pytest.raises(DamagedRecordError, match=rf"`memory://lake/damaged/.*{SAME}"):
        list(source)
    with pytest.raises(RefusedError, match=r"`memory://lake/damaged/.* is damaged: CRC002"):
        tfrecreg.data_source("memory://lake/damaged/", raw=True, verify=True)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("check", "memory://lake/none*"), 2, "no file matches `memory://lake/none*`"),
        (
            ("check", "zzz://lake"),
            2,
            "`zzz://lake` is not read: `zzz://` is not known as a remote store",
        ),
        (
            ("check", "https://u:hunter2@host/x?t=hunter2"),
            2,
            "a URL of `https://` has a password or token, which others could see",
        ),
        (
            ("adopt", "more", "memory://lake/damaged"),
            2,
            "`memory://lake/damaged` is a URL, and only local files are adopted: copy them first",
        ),
        (
            ("check", "build/digits-test*", "--raw", "memory://lake/raw?t=hunter2"),
            2,
            "raw data are not read from `memory://lake/raw`: the URL holds a password or a query",
        ),
        (
            ("diff", "memory://lake/damaged", "memory://lake/build"),
            2,
            "`memory://lake/damaged` is not a build or a release: a diff needs a manifest",
        ),
        (
            ("build", "pets", "--source", "imagefolder", "--raw", "memory://lake/none"),
            2,
            "the raw data `memory://lake/none` does not exist",
        ),
        (
            ("build", "digits", "--raw", "dropbox://lake/x"),
            3,
            "`dropbox://` needs the package `dropboxdrivefs`, which cannot be imported",
        ),
    ],
)
def test_what_cannot_be_read_is_told_in_one_line(
    cli: Any, lake: Path, digits_original: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    done = cli("-C", digits_original, *arguments)
    assert done.code == code
    assert f"error: {message}" in done.err.splitlines()[-2:]
    assert "hunter2" not in done.out + done.err


@pytest.mark.parametrize(
    ("place", "url"),
    [
        *((place, "local://../outside") for place in ("raw", "--raw", "check", "head", "diff")),
        *(("check", url) for url in ("memory://x/y", "git://../..:main@x")),
    ],
)
def test_what_is_no_remote_store_is_refused_in_every_place(
    cli: Any, digits_registry: Path, monkeypatch: pytest.MonkeyPatch, place: str, url: str
) -> None:
    monkeypatch.delenv("TFRECREG_REMOTE_PROTOCOLS")
    table = digits_registry / "datasets/digits.toml"
    build = ("build", "digits")
    arguments: dict[str, tuple[str, ...]] = {
        "raw": build,
        "--raw": ("build", "digits", "--raw", url),
        "check": ("check", url),
        "head": ("head", url),
        "diff": ("diff", "digits", url),
    }
    if place == "raw":
        kept = [line for line in table.read_text().splitlines() if not line.startswith(place)]
        table.write_text("\n".join([f'{place} = "{url}"', *kept]))
    before = tree(digits_registry / "data")
    done = cli("-C", digits_registry, *arguments[place])
    protocol = url.partition(":")[0]
    assert (done.code, done.err.splitlines()[0]) == (
        2,
        f"error: `{url}` is not read: `{protocol}://` is not known as a remote store",
    )
    assert f"TFRECREG_REMOTE_PROTOCOLS={protocol}" in done.err
    assert tree(digits_registry / "data") == before


def test_a_shard_that_cannot_be_copied_is_unreadable(
    cli: Any, lake: Path, memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One shard of two cannot be read: the other is salvaged, and nothing else is written."""
    read = type(memory).cat_file

    def refuse(self: Any, path: str, **options: Any) -> Any:
        if path.endswith("00000-of-00002"):
            raise PermissionError("no")
        return read(self, path, **options)

    monkeypatch.setattr(type(memory), "cat_file", refuse)
    done = cli("salvage", "memory://lake/damaged", "--output", "out")
    assert done.code == 3
    assert ": not read: cannot read `memory://lake/damaged/digits" in done.out
    assert "permission denied" in done.out
    names = sorted(path.name for path in (lake / "out").iterdir())
    shard = "digits-test.tfrecord-00001-of-00002"
    assert names == [shard, f"{shard}.quarantine", "salvage.json"]

"""Copies of a build or release that every command reads: in a folder, and behind a URL."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from tests_support import flip

import tfrecreg
from tfrecreg.cli.main import main
from tfrecreg.core.registry.manifest import render_manifest

URL = "memory://b/copies/digits"


class Older(MemoryFileSystem):  # type: ignore[misc]
    """A library that does not know the condition."""

    protocol = "older"
    store: dict[str, Any] = {}  # noqa: RUF012 - as fsspec has it

    def put_file(self, lpath: str, rpath: str) -> None:
        raise AssertionError("an unconditional write")


fsspec.register_implementation("older", Older, clobber=True)


def stored(memory: Any) -> dict[str, bytes]:
    paths = [each for each in memory.find("/b") if memory.isfile(each)]
    return {each: memory.cat_file(each) for each in paths}


@pytest.mark.parametrize("reference", ["digits", "digits@1.0.0"])
@pytest.mark.parametrize("place", ["folder", URL])
def test_a_copy_is_read_as_the_original(
    digits_registry: Path, tmp_path: Path, memory: Any, reference: str, place: str
) -> None:
    del memory
    found = tfrecreg.open(digits_registry).find(reference)
    target = place if place == URL else str(tmp_path / place)
    result = found.export(target, to="files", progress=False)
    assert result.folder == target
    assert result.splits == {"test": 60, "train": 200}
    wanted = {*(each.path for each in (*found.manifest.shards, *found.manifest.files))}
    assert set(result.files) == {*wanted, "manifest.json"}
    report = tfrecreg.check(target, progress=False)
    assert (report.status, report.findings) == ("pass", ())
    assert tfrecreg.digest(target, progress=False).content == found.manifest.content
    copied = tfrecreg.data_source(target, "train", raw=True)
    original = found.data_source("train", raw=True)
    assert [*copied] == [*original]
    assert not any(tfrecreg.diff(target, found, progress=False).totals.values())
    assert [each.key for each in tfrecreg.head(target, 2, split="test")]


def test_an_interrupted_copy_goes_on(digits_registry: Path, memory: Any) -> None:
    run = ["-C", str(digits_registry), "export", "digits@1.0.0", "--to", "files", URL, "-j1"]
    assert main(run) == 0
    whole = stored(memory)
    release = tfrecreg.open(digits_registry)["digits@1.0.0"]
    assert whole["/b/copies/digits/manifest.json"] == render_manifest(release.manifest)
    times = {each: memory.created(each) for each in whole}
    assert main(run) == 0
    assert {each: memory.created(each) for each in whole} == times
    for name in ("manifest.json", release.manifest.shards[0].path):
        memory.rm_file(f"/b/copies/digits/{name}")
    assert main(run) == 0
    assert stored(memory) == whole


@pytest.mark.parametrize("change", ["same size", "other size", "another file"])
def test_other_bytes_are_not_replaced(
    digits_registry: Path, memory: Any, change: str, capsys: pytest.CaptureFixture[str]
) -> None:
    release = tfrecreg.open(digits_registry)["digits@1.0.0"]
    entry = release.manifest.shards[-1]
    size = {"same size": entry.bytes, "other size": 3, "another file": 3}[change]
    name = "mine.txt" if change == "another file" else entry.path
    memory.pipe_file(f"/b/copies/digits/{name}", b"x" * size)
    assert (
        main(["-C", str(digits_registry), "export", "digits@1.0.0", "--to", "files", URL, "-j1"])
        == 2
    )
    assert f"`{URL}/{name}` exists" in capsys.readouterr().err
    left = stored(memory)
    assert left[f"/b/copies/digits/{name}"] == b"x" * size
    assert "/b/copies/digits/manifest.json" not in left


def test_damage_is_not_sent(digits_registry: Path, memory: Any) -> None:
    shard = next((digits_registry / "data/digits").glob("*.tfrecord-*"))
    flip(shard, shard.stat().st_size // 2)
    assert main(["-C", str(digits_registry), "export", "digits", "--to", "files", URL, "-j1"]) == 1
    left = stored(memory)
    assert not {f"/b/copies/digits/{shard.name}", "/b/copies/digits/manifest.json"} & left.keys()


@pytest.mark.parametrize(
    ("to", "url", "code"),
    [
        ("files", "https://host/x", 2),
        ("files", "file:///x", 2),
        ("jsonl", URL, 2),
        ("files", "older://b/x", 3),
    ],
)
def test_where_nothing_is_sent(digits_registry: Path, to: str, url: str, code: int) -> None:
    assert main(["-C", str(digits_registry), "export", "digits", "--to", to, url, "-j1"]) == code


def test_the_document_names_the_url(
    digits_registry: Path, memory: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    del memory
    run = [
        "-C",
        str(digits_registry),
        "export",
        "digits",
        "--to",
        "files",
        f"{URL}/",
        "-j1",
        "--json",
    ]
    assert main(run) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["folder"], told["shards"], told["notes"]) == (URL, {"copied": 4}, [])

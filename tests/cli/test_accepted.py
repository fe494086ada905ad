"""Findings that a gate accepts are shown, and adopted data are held against their raw data."""

from __future__ import annotations

from pathlib import Path

import pytest
from foreign_support import example, put
from image_support import png
from registry_support import write

from tfrecreg.core.example.values import bytes_feature

HOSTS = "\n[gates.default.limits]\nmanifest = { hosts = 4 }\n"
WAIVER = '\n[[waivers]]\ncode = "SHD008"\nowner = "ada"\nreason = "few"\nexpires = 2099-01-31\n'


def codes(document: dict[str, list[dict[str, str]]], key: str = "findings") -> list[str]:
    return [each["code"] for each in document[key]]


def configure(registry: Path, text: str) -> None:
    with (registry / "tfrecreg.toml").open("a") as file:
        file.write(text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of a class with one image in it twice, which DUP001 warns of."""
    path = tmp_path / "images/cat"
    path.mkdir(parents=True)
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        (path / f"{name}.png").write_bytes(png(40, 40, seed=seed))
    return path.parent


def test_release_shows_the_warnings_that_passed(cli, registry, folder) -> None:
    made = ("--source", "imagefolder", "--raw", folder)
    assert cli("build", "pets", *made).code == 0
    done = cli("release", "pets", "--version", "1.0.0")
    assert done.code == 0
    assert "warning DUP001 duplicate-" in done.err
    assert done.out.startswith("released pets@1.0.0 (initial)\n")
    document = cli("release", "pets", "--version", "2.0.0", "--json").json
    assert codes(document) == ["DUP001"]
    assert document["waived"] == []
    again = cli("release", "pets", "--version", "2.0.0", "--json").json
    assert (again["created"], again["findings"], again["waived"]) == (False, [], [])


def test_build_shows_what_reading_back_found(cli, registry, folder) -> None:
    made = ("build", "pets", "--source", "imagefolder", "--raw", folder)
    assert cli(*made).err == ""
    configure(registry, HOSTS)
    done = cli(*made)
    assert done.code == 0
    assert "warning SHD008" in done.err
    assert codes(cli(*made, "--json").json) == ["SHD008"]
    done = cli(*made, "--release", "auto", "--json")
    assert codes(done.json) == ["SHD008"]
    assert codes(done.json["release"]) == ["DUP001", "SHD008"]
    configure(registry, WAIVER)
    done = cli(*made, "--base", "none")
    assert "waived: SHD008 SHD008:pets:" in done.err
    assert "warning SHD008" not in done.err
    document = cli(*made, "--json").json
    assert (codes(document), codes(document, "waived")) == ([], ["SHD008"])


@pytest.fixture
def foreign(registry: Path, tmp_path: Path) -> Path:
    """Records of another tool, many times their raw data: the images were decoded."""
    raw = tmp_path / "raw"
    raw.mkdir()
    records = []
    for number in range(20):
        (raw / f"{number}.png").write_bytes(b"\x89PNG" + bytes([number]) * 96)
        records.append(example(number, image=bytes_feature(bytes([number]) * 3000)))
    put(tmp_path / "foreign/train.tfrecord", *records)
    return tmp_path / "foreign"


def test_adopt_measures_the_raw_data_that_are_named(cli, registry, foreign) -> None:
    assert cli("adopt", "pets", foreign, "--raw", foreign.parent / "raw").code == 0
    shown = cli("show", "pets")
    assert "20 files, 2.0 kB; the shards are 31.02 × the raw files" in shown.out
    done = cli("release", "pets", "--version", "1.0.0")
    assert done.code == 1
    assert "error INF001 inflated" in done.err
    assert not (registry / "registry/pets").exists()
    # Files that stay where they are keep what is known of their raw data.
    assert cli("adopt", "pets", "--in-place").code == 0
    assert cli("check", "pets", "--only", "inflation").code == 1


def test_release_holds_adopted_data_against_raw_data(cli, registry, foreign) -> None:
    assert cli("adopt", "pets", foreign).code == 0
    done = cli("release", "pets", "--version", "1.0.0", "--raw", foreign.parent / "raw")
    assert done.code == 1
    assert "error INF001 inflated" in done.err
    assert done.err.endswith(f"hint: tfrecreg check pets --raw {foreign.parent}/raw\n")
    done = cli("release", "pets", "--version", "1.0.0", "--raw", "nowhere")
    assert done.code == 2
    assert "/nowhere` does not exist" in done.err
    done = cli("release", "pets", "--version", "1.0.0")
    assert done.code == 0
    assert (
        "inflation is not judged, because the size of the raw data is unknown: see --raw\n"
        in done.err
    )


@pytest.mark.parametrize("before", [True, False])
def test_raw_of_the_file_counts_for_adopted_data(cli, registry, foreign, before) -> None:
    file, text = registry / "datasets/pets.toml", 'raw = "../raw"\n'
    if before:
        write(file, text)
    assert cli("adopt", "pets", foreign).code == 0
    if not before:
        write(file, text)
    done = cli("release", "pets", "--version", "1.0.0")
    assert done.code == 1
    assert "error INF001 inflated" in done.err
    assert "INF001" in cli("check", "pets").out
    (foreign.parent / "raw").rename(foreign.parent / "moved")
    done = cli("check", "pets")
    if before:  # the manifest knows
        assert done.code == 1
        return
    assert done.code == 0
    assert (
        f"the raw data of `pets` are not in `{registry.parent}/raw`, so inflation is not judged"
        in done.err
    )
    done = cli("release", "pets", "--version", "1.0.0")
    assert done.code == 2
    assert f"the raw data `{registry.parent}/raw` does not exist" in done.err
    assert not (registry / "registry/pets").exists()
    done = cli("adopt", "pets", foreign)
    assert (done.code, (registry / "data/pets/manifest.json").exists()) == (2, True)


def test_adopt_shows_what_it_accepts(cli, registry, foreign) -> None:
    put(foreign / "val.tfrecord")
    done = cli("adopt", "pets", foreign)
    assert done.code == 0
    assert "warning SHD007" in done.err
    (finding,) = cli("adopt", "pets", foreign, "--json").json["findings"]
    shard = str(foreign / "val.tfrecord")
    assert (finding["code"], finding["message"]) == ("SHD007", "the shard has no records")
    assert finding["fingerprint"] == f"SHD007:pets:validation::{shard}"
    assert finding["locations"] == [{"split": "validation", "shard": shard}]

"""`tfrecreg export`: what it says, its exit codes, and the folder it leaves or does not leave."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests_support import flip, tree


@pytest.fixture
def released(cli, raw, registry) -> Path:
    """A registry with a release and the build of the drawn digits, two shards a split."""
    for arguments in (
        ("build", "digits", "--source", "mnist", "--raw", raw, "--shards", "2"),
        ("release", "digits", "--version", "1.2.0", "--note", "the first"),
    ):
        done = cli(*arguments)
        assert done.code == 0, done.err
    return registry


def test_a_release_becomes_a_folder_for_tfds(cli, released, tmp_path) -> None:
    out = tmp_path / "out"
    done = cli("export", "digits@1.*", "--to", "tfds", out)
    assert done.code == 0, done.err
    size = sum(path.stat().st_size for path in out.glob("*.tfrecord-*"))
    assert done.out.splitlines() == [
        f"exported digits@1.2.0 to {out}",
        f"  80 records in 4 shards (4 linked), {size / 1000:.1f} kB",
        f"read it: tfds.builder_from_directory('{out}')",
    ]
    info = json.loads((out / "dataset_info.json").read_text())
    assert (info["name"], info["version"]) == ("digits", "1.2.0")
    assert info["releaseNotes"] == {"1.2.0": "the first"}
    assert [split["shardLengths"] for split in info["splits"]] == [["10", "10"], ["30", "30"]]
    features = json.loads((out / "features.json").read_text())["featuresDict"]["features"]
    assert features["image/encoded"]["image"] == {
        "dtype": "uint8",
        "encodingFormat": "png",
        "shape": {"dimensions": ["28", "28", "1"]},
    }
    assert (out / "image.class.label.labels.txt").read_text() == "".join(
        f"{number}\n" for number in range(10)
    )


def test_json_is_one_document(cli, released, tmp_path) -> None:
    done = cli("export", "digits", "--to", "tfds", tmp_path / "out", "--json")
    assert done.code == 0, done.err
    document = done.json
    assert document["format_version"] == 1
    assert document["reference"] == "digits"
    assert document["version"] == "0.0.0"
    assert document["folder"] == str(tmp_path / "out")
    assert document["splits"] == {"test": 20, "train": 60}
    assert document["shards"] == {"linked": 4}
    assert document["files"] == sorted(tree(tmp_path / "out"))
    assert document["notes"] == ["a build has no number: it is exported as version 0.0.0"]


def test_croissant_is_described_beside_the_shards(cli, released, tmp_path) -> None:
    done = cli("export", "digits@1.2.0", "--to", "croissant", tmp_path / "out")
    assert (done.code, done.err) == (0, "")
    size = sum(path.stat().st_size for path in (tmp_path / "out").glob("*.tfrecord-*"))
    assert done.out.splitlines() == [
        f"exported digits@1.2.0 to {tmp_path / 'out'}",
        f"  80 records in 4 shards (4 linked), {size / 1000:.1f} kB",
        "  note: Croissant recommends a license: `datasets/digits.toml` has no `license`",
        "  note: Croissant recommends a citation: `datasets/digits.toml` has no `citation`",
        "  note: Croissant recommends a description: `datasets/digits.toml` has no `description`",
        "the description is `croissant.json`: publish it with the shards",
    ]
    document = cli("export", "digits", "--to", "croissant", tmp_path / "more", "--json").json
    assert document["files"] == sorted(tree(tmp_path / "more"))
    assert document["notes"][0] == "a build has no number: it is exported as version 0.0.0"


def test_a_gzip_build_says_that_it_was_decompressed(cli, raw, registry, tmp_path) -> None:
    done = cli("build", "digits", "--source", "mnist", "--raw", raw, "--compression", "gzip")
    assert done.code == 0, done.err
    done = cli("export", "digits", "--to", "tfds", tmp_path / "out")
    assert done.code == 0, done.err
    assert "80 records in 2 shards (2 decompressed), " in done.out
    assert "  note: TFDS does not read gzip: the shards were decompressed" in done.out


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (("digits", "--to", "tfd", "out"), "no format `tfd` to export to; did you", "`tfds`"),
        (
            ("digit", "--to", "tfds", "out"),
            "no dataset `digit`; did you mean `digits`?",
            "available",
        ),
        (("digits@9.0.0", "--to", "tfds", "out"), "no release `digits@9.0.0`", "available: 1.2.0"),
        (("digits", "--to", "tfds", "full"), "`full` is not empty", "an export never overwrites"),
        (("digits", "--to", "tfds", "s3://x/y"), "`s3://x/y` is a URL, and", "name a folder of"),
        (("digits", "--to", "tfds", "data/x"), "`data/x` is in `data/` of the regis", "else"),
    ],
)
def test_what_cannot_be_done_is_exit_2(cli, released, arguments, message, hint) -> None:
    (released / "full").mkdir()
    (released / "full/mine").write_bytes(b"mine")
    (released / "file").write_bytes(b"mine")
    before = tree(released)
    done = cli("export", *arguments)
    assert done.code == 2
    assert f"error: {message}" in done.err
    assert hint in done.err
    assert done.out == ""
    assert tree(released) == before


def test_damaged_bytes_are_exit_1_and_no_folder(cli, released, tmp_path) -> None:
    for folder in ("data/digits", "versions/digits/1.2.0"):
        flip(released / folder / "digits-test.tfrecord-00001-of-00002", 30)
    done = cli("export", "digits@1.2.0", "--to", "tfds", tmp_path / "out")
    assert done.code == 1
    assert "`digits-test.tfrecord-00001-of-00002` is not what `digits@1.2.0` has reg" in done.err
    assert "hint: tfrecreg check digits@1.2.0" in done.err
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.glob(".tfrecreg-export*"))
    assert cli("check", "digits@1.2.0").code == 1


def test_bytes_that_are_elsewhere_are_told_before_anything_is_made(cli, released, tmp_path) -> None:
    for folder in ("data/digits", "versions/digits"):
        shutil.rmtree(released / folder)
    done = cli("export", "digits@1.2.0", "--to", "tfds", tmp_path / "deep/out")
    assert done.code == 2
    assert "error: the bytes of `digits@1.2.0` are not here" in done.err
    assert not (tmp_path / "deep").exists()


@pytest.mark.medium
def test_exporting_needs_no_heavy_package(released, tmp_path) -> None:
    script = (
        "import sys\n"
        "from tfrecreg.cli.main import main\n"
        f"code = main(['export', 'digits', '--to', 'tfds', {str(tmp_path / 'out')!r}, '-j1'])\n"
        "heavy = {'tensorflow', 'tensorflow_datasets', 'dvc', 'PIL', 'pandas', 'pyarrow',\n"
        "         'apache_beam', 'tensorflow_data_validation'}\n"
        "print(sorted(heavy & set(sys.modules)), code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=released, capture_output=True, text=True
    )
    assert done.stdout.splitlines()[-1] == "[] 0", done.stderr


def test_a_release_becomes_shards_with_indexes(cli, released, tmp_path) -> None:
    out = tmp_path / "out"
    done = cli("export", "digits@1.*", "--to", "index", "--suffix", ".tfindex", out)
    assert done.code == 0, done.err
    size = sum(path.stat().st_size for path in out.glob("*[0-9]"))
    assert done.out.splitlines() == [
        f"exported digits@1.2.0 to {out}",
        f"  80 records in 4 shards (4 linked), {size / 1000:.1f} kB",
        "each shard has its index beside it, with the suffix .tfindex",
    ]
    lines = (out / "digits-test.tfrecord-00001-of-00002.tfindex").read_text().splitlines()
    assert len(lines) == 10
    assert lines[0].startswith("0 ")

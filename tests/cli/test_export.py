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
    assert document["notes"] == ["a build has no version number: it is exported as version 0.0.0"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("digits", "--to", "tfd", "out"), "no exporter named `tfd`; did you mean `tfds`?"),
        (("digit", "--to", "tfds", "out"), "no dataset `digit`; did you mean `digits`?"),
        (("digits@9.0.0", "--to", "tfds", "out"), "no release `digits@9.0.0`"),
        (("digits", "--to", "tfds", "full"), "`full` is not empty"),
        (("digits", "--to", "tfds", "s3://x/y"), "`s3://x/y` is a URL, and"),
        (("digits", "--to", "tfds", "data/x"), "`data/x` is in `data/` of the regis"),
    ],
)
def test_what_cannot_be_done_is_exit_2(cli, released, arguments, message) -> None:
    (released / "full").mkdir()
    (released / "full/mine").write_bytes(b"mine")
    (released / "file").write_bytes(b"mine")
    before = tree(released)
    done = cli("export", *arguments)
    assert done.code == 2
    assert f"error: {message}" in done.err
    assert done.out == ""
    assert tree(released) == before


def test_damaged_bytes_are_exit_1_and_no_folder(cli, released, tmp_path) -> None:
    for folder in ("data/digits", "versions/digits/1.2.0"):
        flip(released / folder / "digits-test.tfrecord-00001-of-00002", 30)
    done = cli("export", "digits@1.2.0", "--to", "tfds", tmp_path / "out")
    assert done.code == 1
    assert "`digits-test.tfrecord-00001-of-00002` of `digits@1.2.0` cannot be exported" in done.err
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

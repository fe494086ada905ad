"""What is meant as a reference is never called a file that does not match."""

from __future__ import annotations

import re
from pathlib import Path

import pytest


@pytest.mark.parametrize("command", [("check",), ("head",), ("show",), ("schema", "show")])
def test_the_tag_of_a_release_names_it(cli, here: Path, command) -> None:
    """Not the build of the dataset, which is another one since, nor its schema."""
    text = 'feature { name: "other" type: INT presence { min_fraction: 1 } }\n'
    (here / "schemas/digits.pbtxt").write_text(text)
    name = "digits-train.tfrecord-00000-of-00002"
    (here / f"data/digits/{name}").write_bytes(b"")
    (here / "data/digits/manifest.json").unlink()
    tagged, released = (cli(*command, f"digits@{version}") for version in ("v1.0.0", "1.0.0"))
    assert (tagged.code, tagged.err) == (0, released.err)
    assert without_times(tagged.out) == without_times(released.out)
    built = cli(*command, "digits")
    assert (built.code, without_times(built.out)) != (0, without_times(tagged.out))


def without_times(text: str) -> str:
    return re.sub(r"\d+(\.\d+)? m?s\b", "", text)


def test_files_keep_their_names(cli, here: Path) -> None:
    """A set of two files, a file that looks like a bad reference, and a set that is not there."""
    shard = (here / "data/digits/digits-test.tfrecord-00000-of-00002").read_bytes()
    for name in ("digits-00000-of-00002", "digits-00001-of-00002", "digits@one"):
        (here / name).write_bytes(shard)
    assert cli("check", "digits@2", "--only", "crc", "--json").json["summary"]["shards"] == 2
    assert cli("check", "digits@one", "--only", "crc").code == 0
    missing = cli("check", "others@3")
    assert (missing.code, "no file matches `others@3`" in missing.err) == (2, True)

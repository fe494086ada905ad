"""`tfrecreg digest`: its lines, its document, its errors."""

from __future__ import annotations

from pathlib import Path

import pytest
from check_support import framed
from tests_support import flip

import tfrecreg


def test_a_line_for_each_split(cli, here: Path) -> None:
    manifest = tfrecreg.open().find("digits@1.0.0").manifest
    test, train = manifest.splits
    done = cli("digest", "digits@latest")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        f"{test.content}   60  test",
        f"{train.content}  200  train",
        f"{manifest.content}  260  (all splits)",
    ]
    done = cli("digest", "data/digits/digits-train.tfrecord-*", "-j", "2")
    assert done.out == f"{train.content}  200  train\n"


def test_json_has_every_split(cli, here: Path) -> None:
    (here / "one.tfrecord").write_bytes(framed(b"record"))
    document = cli("digest", "one.tfrecord", "--split", "train", "--json").json
    (target,) = document["targets"]
    assert document["format_version"] == 1
    assert target == {
        "target": "one.tfrecord",
        "content": target["splits"][0]["content"],
        "splits": [
            {"split": "train", "records": 1, "shards": 1, "content": target["content"]},
        ],
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Missing argument 'TARGET..'"),
        (("digit",), "no dataset `digit`; did you mean `digits`?"),
        (("digits", "--split", "x"), "`--split` applies only to files"),
    ],
)
def test_what_cannot_be_done_is_exit_2(cli, here: Path, arguments, message) -> None:
    (here / "one.tfrecord").write_bytes(framed(b"record"))
    done = cli("digest", *arguments)
    assert (done.code, done.out) == (2, "")
    assert f"error: {message}" in done.err


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_damage_is_exit_1(cli, here: Path, jobs: str) -> None:
    shard = here / "data/digits/digits-test.tfrecord-00000-of-00002"
    flip(shard, shard.stat().st_size // 2)
    done = cli("digest", "digits", "-j", jobs)
    assert (done.code, done.out) == (1, "")
    assert done.err.splitlines() == [
        "error: `digits-test.tfrecord-00000-of-00002` is damaged: the digest would lack the "
        "damaged records",
    ]

"""Which split a file is of: what was said, its name, its folder; nothing is guessed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tfrecreg.builtin.adopt.request import deal
from tfrecreg.core.registry.find import bare_files, target_of
from tfrecreg.core.values.errors import UsageError

Rules = tuple[tuple[str, str], ...]


def dealt(folder: Path, *names: str, rules: Rules = ()) -> dict[str, list[str]]:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    paths = [str(folder / name) for name in names]
    shards = target_of(bare_files(paths)).shards
    found = deal(shards, rules)
    return {
        split: [Path(f"/{shard.path}").relative_to(folder).as_posix() for shard in members]
        for split, members in found.items()
    }


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (
            ("train-00001-of-00002", "train-00000-of-00002", "validation-00000-of-00001"),
            {
                "train": ["train-00000-of-00002", "train-00001-of-00002"],
                "validation": ["validation-00000-of-00001"],
            },
        ),
        (
            ("x-val.tfrecord", "x-test.tfrecord"),
            {"test": ["x-test.tfrecord"], "validation": ["x-val.tfrecord"]},
        ),
        (
            ("train10-2.tfrec", "train9-2.tfrec", "val00-1.tfrec"),
            {"train": ["train9-2.tfrec", "train10-2.tfrec"], "validation": ["val00-1.tfrec"]},
        ),
        (
            ("x-test-dev.tfrecord", "x-train.tfrecord"),
            {"test_dev": ["x-test-dev.tfrecord"], "train": ["x-train.tfrecord"]},
        ),
        (
            (
                "Split-eval/data_tfrecord-00000-of-00001.gz",
                "Split-train/data_tfrecord-00000-of-00001.gz",
            ),
            {
                "eval": ["Split-eval/data_tfrecord-00000-of-00001.gz"],
                "train": ["Split-train/data_tfrecord-00000-of-00001.gz"],
            },
        ),
        (("Split-eval/data.tfrecord",), {"eval": ["Split-eval/data.tfrecord"]}),
        (
            ("TRAIN/a.tfrecord", "dev/a.tfrecord"),
            {"train": ["TRAIN/a.tfrecord"], "validation": ["dev/a.tfrecord"]},
        ),
        (("x.tfrecord",), {"train": ["x.tfrecord"]}),
        (("x_10.tfrecord", "x_9.tfrecord"), {"train": ["x_9.tfrecord", "x_10.tfrecord"]}),
        (("test/x.tfrecord",), {"test": ["test/x.tfrecord"]}),
        (
            ("val/9.tfrecord", "val/10.tfrecord", "train/00.tfrecord"),
            {"train": ["train/00.tfrecord"], "validation": ["val/9.tfrecord", "val/10.tfrecord"]},
        ),
        (("events.out.tfevents.1",), {"train": ["events.out.tfevents.1"]}),
    ],
)
def test_names_and_folders_say_it(
    tmp_path: Path, names: tuple[str, ...], expected: dict[str, list[str]]
) -> None:
    assert dealt(tmp_path, *names) == expected


def test_what_was_said_comes_before_names(tmp_path: Path) -> None:
    names = ("a/x-train.tfrecord", "b/x-train.tfrecord", "b/y.tfrecord", "x-test.tfrecord")
    rules = (("train", "a/*"), ("extra", "b/*.tfrecord"))
    assert dealt(tmp_path, *names, rules=rules) == {
        "extra": ["b/x-train.tfrecord", "b/y.tfrecord"],
        "test": ["x-test.tfrecord"],
        "train": ["a/x-train.tfrecord"],
    }


def test_one_split_may_have_several_globs(tmp_path: Path) -> None:
    names = ("a.tfrecord", "b.tfrecord", "c.tfrecord")
    rules = (("train", "a*"), ("train", f"{tmp_path}/b*"), ("test", "c*"))
    assert dealt(tmp_path, *names, rules=rules) == {
        "test": ["c.tfrecord"],
        "train": ["a.tfrecord", "b.tfrecord"],
    }


@pytest.mark.parametrize(
    ("names", "rules", "message"),
    [
        (("a.tfrecord", "b.tfrecord"), (), "no split is known for `{0}/a.tfrecord`"),
        (
            ("x-train.tfrecord", "y.tfrecord"),
            (),
            "no split is known for `{0}/y.tfrecord`",
        ),
        (
            ("a.tfrecord", "b.tfrecord"),
            (("train", "a*"),),
            "no split is known for `{0}/b.tfrecord`",
        ),
        (
            ("x-val.tfrecord", "x-dev.tfrecord"),
            (),
            "`{0}/x-dev.tfrecord` and `{0}/x-val.tfrecord` belong to different sets, but both "
            "would be in the split `validation`",
        ),
        (
            ("a/train-00000-of-00001", "b/train-00000-of-00001"),
            (),
            "`{0}/a/train-00000-of-00001` and `{0}/b/train-00000-of-00001` belong to different "
            "sets, but both would be in the split `train`",
        ),
        (("a.tfrecord",), (("train", "b*"),), "`--split train=b*` matches none of the 1 files"),
        (("a.tfrecord",), (("train", "."),), "`--split train=.` matches none of the 1 files"),
        (
            ("a.tfrecord",),
            (("train", "a*"), ("test", "*.tfrecord")),
            "`{0}/a.tfrecord` is in the split `train` and in `test`, according to `--split`",
        ),
    ],
)
def test_what_is_not_clear_is_refused(
    tmp_path: Path, names: tuple[str, ...], rules: tuple[tuple[str, str], ...], message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        dealt(tmp_path, *names, rules=rules)
    assert caught.value.message.startswith(message.format(tmp_path))

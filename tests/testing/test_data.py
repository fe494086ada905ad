"""What `tfrecreg.testing` gives to tests and examples."""

from __future__ import annotations

from pathlib import Path

import pytest

import tfrecreg
from tfrecreg.testing import build_examples, write_digits


def test_the_same_arguments_give_the_same_digits(tmp_path: Path) -> None:
    def contents(folder: str, seed: int) -> dict[str, bytes]:
        write_digits(tmp_path / folder, train=5, test=2, seed=seed)
        return {path.name: path.read_bytes() for path in (tmp_path / folder).iterdir()}

    once = contents("once", 1)
    assert once == contents("again", 1)
    assert once.keys() == contents("other", 2).keys()
    assert once != contents("other", 2)


def test_a_split_without_digits_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a split needs at least 1 image, not 0"):
        write_digits(tmp_path, train=0)


def test_examples_are_built_with_keys_labels_and_a_manifest(tmp_path: Path) -> None:
    built = build_examples(
        tmp_path,
        {"train": [{"label": 1, "text": "a"}, {"label": 0, "text": "b"}], "test": [{"label": 0}]},
        name="notes",
        keys={"train": ["x", "y"], "test": ["z"]},
        labels={"label": ["bad", "good"]},
        schema='feature { name: "label" type: INT presence { min_fraction: 1 } } '
        'feature { name: "text" type: BYTES }',
        shards=1,
    )
    assert built.manifest.labels == {"label": ["bad", "good"]}
    assert {each.name: each.records for each in built.manifest.splits} == {"train": 2, "test": 1}
    rows = tfrecreg.data_source(built, split="train")
    assert sorted(rows.key(number) for number in range(2)) == ["x", "y"]


def test_a_number_of_keys_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(tfrecreg.UsageError, match="`train` has 2 records, but 1 keys"):
        build_examples(tmp_path, {"train": [{"a": 1}, {"a": 2}]}, keys={"train": ["x"]})

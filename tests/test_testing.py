"""What `tfrecreg.testing` gives to tests and examples."""

from __future__ import annotations

from pathlib import Path

import pytest

import tfrecreg
from tfrecreg.testing import examples, write_digits


def test_digits_are_a_dataset_for_the_source_mnist(tmp_path: Path) -> None:
    write_digits(tmp_path / "raw/mnist")
    found = [item.split for item, _ in examples("mnist", tmp_path / "raw/mnist")]
    assert (found.count("train"), found.count("test"), len(found)) == (600, 100, 700)


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


def test_a_file_in_place_of_the_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "raw").write_text("")
    with pytest.raises(tfrecreg.TfrecregError, match="raw"):
        write_digits(tmp_path / "raw")

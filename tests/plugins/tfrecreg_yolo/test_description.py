"""What describes a dataset: data.yaml, obj.data, classes.txt; good, contradictory, hostile."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tfrecreg.core.values.errors import MissingExtraError

NAMES = "names: [cat, dog]\n"


def classes(raw: Any, **options: Any) -> list[str]:
    return list(raw.source(**options).labels()["image/object/class/label"])


@pytest.mark.parametrize(
    ("yaml", "expected"),
    [
        ("names: [cat, dog]", ["cat", "dog"]),
        ("names:\n  0: cat\n  1: dog\n", ["cat", "dog"]),
        ("names: {1: dog, 0: cat}", ["cat", "dog"]),
        ("names: {2: dog, 0: cat}", ["cat", "", "dog"]),
        ("nc: 2\nnames: ['cat', \"dog\"]", ["cat", "dog"]),
        ("nc: 2", ["class0", "class1"]),
        ("names: [no, yes, null, 1e3, 2024-01-01]", ["no", "yes", "null", "1e3", "2024-01-01"]),
        ("\ufeffnames: [Käse]\r\n", ["Käse"]),
        ("names: !!python/object/apply:os.system [cat]", ["cat"]),
    ],
)
def test_names_are_texts_as_they_are_written(raw: Any, yaml: str, expected: list[str]) -> None:
    raw.one("")
    raw.put("data.yaml", yaml)
    assert classes(raw) == expected


@pytest.mark.parametrize(
    "yaml",
    [
        "names: " + "[" * 5000,
        "names: &a [*a]",
        "names: [cat]\x00",
        "- cat\n- dog\n",
        "names: {cat: 0}",
        "names: {99999999: cat}",
        "nc: 3\nnames: [cat, dog]",
        NAMES + "train: {a: b}",
        NAMES + "kpt_shape: [17, 4]",
        b"names: [K\xe4se]",
        b"#" * ((1 << 20) + 1),
        "",
    ],
    ids=lambda each: str(each)[:30],
)
def test_a_file_that_says_nothing_of_use_is_refused(raw: Any, yaml: str | bytes) -> None:
    raw.one("")
    raw.put("data.yaml", yaml)
    assert "`data.yaml`" in raw.error().message


def test_without_pyyaml_the_extra_is_named(raw: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    raw.one("")
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(MissingExtraError) as caught:
        raw.made()
    assert (caught.value.extra, caught.value.exit_code) == ("yaml", 3)


class TestOtherFiles:
    def images(self, raw: Any) -> None:
        raw.images("images/a.png", "images/b.png")
        raw.put("labels/a.txt", "1 0.5 0.5 0.2 0.5\n")

    def test_classes_are_lines(self, raw: Any) -> None:
        self.images(raw)
        raw.put("classes.txt", "\ufeffcat\r\ngrey dog\r\n\r\n")
        assert classes(raw) == ["cat", "grey dog"]
        assert "classes.txt" in [file.path for file in raw.source().raw_files()]

    def test_lists_beside_the_labels_are_one_if_they_are_equal(self, raw: Any) -> None:
        self.images(raw)
        raw.put("labels/classes.txt", "cat\ndog\n")
        raw.put("images/classes.txt", "cat\ndog\n")
        assert classes(raw) == ["cat", "dog"]
        raw.put("images/classes.txt", "dog\ncat\n")
        raw.error()
        assert classes(raw, classes=("a", "b")) == ["a", "b"]

    def test_darknet_names_lists_and_classes(self, raw: Any) -> None:
        raw.images("data/obj_train_data/a.png", "data/obj_train_data/b.png")
        raw.put("data/obj_train_data/a.txt", "1 0.5 0.5 0.2 0.5\n")
        raw.put("data/obj_train_data/b.txt", "")
        raw.put("data/obj.names", "cat\ndog\n")
        raw.put(
            "data/obj.data",
            "classes = 2\ntrain = data/train.txt\nvalid=data/valid.txt\n"
            "names = data/obj.names\nbackup = backup/\n",
        )
        raw.put("data/train.txt", "data/obj_train_data/a.png\r\n")
        raw.put("data/valid.txt", "data/obj_train_data/b.png\n")
        assert classes(raw) == ["cat", "dog"]
        assert raw.splits() == {
            "train": ["data/obj_train_data/a.png"],
            "validation": ["data/obj_train_data/b.png"],
        }
        assert raw.remarks() == []
        (raw.path / "data/obj.names").unlink()
        raw.error()

    def test_of_two_descriptions_an_option_names_one(self, raw: Any) -> None:
        self.images(raw)
        raw.put("pets.yaml", "train: images\n" + NAMES)
        assert classes(raw) == ["cat", "dog"]
        raw.put("other.yaml", "train: images\nnames: [x, y]\n")
        raw.error()
        assert classes(raw, data="other.yaml") == ["x", "y"]
        assert classes(raw, data="./other.yaml") == ["x", "y"]

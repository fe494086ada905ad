"""What describes a dataset: data.yaml, obj.data, classes.txt; good, contradictory, hostile."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from package_support import CHECKOUT

NAMES = "names: [cat, dog]\n"


def classes(raw: Any, **options: Any) -> list[str]:
    return list(raw.source(**options).labels()["image/object/class/label"])


@pytest.mark.parametrize(
    ("yaml", "expected"),
    [
        ("names: [cat, dog]", ["cat", "dog"]),
        ("names:\n- cat\n- dog\n", ["cat", "dog"]),
        ("names:\n  0: cat\n  1: dog\n", ["cat", "dog"]),
        ("names: {1: dog, 0: cat}", ["cat", "dog"]),
        ("names: {2: dog, 0: cat}", ["cat", "", "dog"]),
        ("nc: 2\nnames: ['cat', \"dog\"]", ["cat", "dog"]),
        ("nc: 2", ["class0", "class1"]),
        ("names: [no, yes, null, 1e3, 2024-01-01]", ["no", "yes", "null", "1e3", "2024-01-01"]),
        ("\ufeffnames: [Käse]\r\n", ["Käse"]),
        ("names: !!python/object/apply:os.system [cat]", ["cat"]),
        ("animals: &animals [cat, dog]\nnames: *animals", ["cat", "dog"]),
    ],
)
def test_names_are_texts_as_they_are_written(raw: Any, yaml: str, expected: list[str]) -> None:
    raw.one("")
    raw.put("data.yaml", yaml)
    assert classes(raw) == expected


@pytest.mark.parametrize(
    ("yaml", "says"),
    [
        ("names: " + "[" * 5000, "`data.yaml` cannot be read as YAML: it is nested too deeply"),
        ("names: &a [*a]", "`data.yaml` cannot be read as YAML: it is nested too deeply"),
        ("names: [cat\ntrain: x", "`data.yaml`, line 2 cannot be read as YAML"),
        ("names: [cat]\nnames: [dog]", "line 2 cannot be read as YAML: the key `names` occurs"),
        ("? [a]\n: b\n", "a key is not a text"),
        ("names: [cat]\x00", "cannot be read as YAML"),
        ("- cat\n- dog\n", "`data.yaml` is not a mapping"),
        ("just text", "`data.yaml` is not a mapping"),
        ("names: cat", "`data.yaml`: `names` is not a list, or a mapping of numbers to names"),
        ("names: {cat: 0}", "`data.yaml`: the entry `cat` of `names` is not a class"),
        ("names: {-1: cat}", "the entry `-1` of `names` is not a class"),
        ("names: {99999999: cat}", "the entry `99999999` of `names` is not a class"),
        ("names: {0: cat, 00: dog}", "the entry `00` of `names` is not a class"),
        ("names: [[cat]]", "the entry `0` of `names` is not a class"),
        ("nc: 3\nnames: [cat, dog]", "`data.yaml` has 2 `names`, and says `nc: 3`"),
        ("nc: many", "`data.yaml`: `nc` is not a number up to 65536"),
        ("nc: 99999999", "`data.yaml`: `nc` is not a number up to 65536"),
        (NAMES + "path: [a]", "`data.yaml`: `path` is not a folder"),
        (NAMES + "train: {a: b}", "`train` is not a folder, a list of images, or a list of these"),
        (NAMES + "train: [[a]]", "`train` is not a folder, a list of images, or a list of these"),
        (NAMES + "kpt_shape: 17", "`kpt_shape` is not the number of keypoints and 2 or 3"),
        (NAMES + "kpt_shape: [17, x]", "`kpt_shape` is not the number of keypoints and 2 or 3"),
        (NAMES + "kpt_shape: [17, 4]", "`kpt_shape` is not the number of keypoints and 2 or 3"),
        (b"names: [K\xe4se]", "`data.yaml` is not UTF-8: line 1 has the byte 0xe4"),
        (b"#" * ((1 << 20) + 1), "`data.yaml` has 1,048,577 bytes, expected at most 1,048,576"),
        ("", "lists the names of the classes: expected `names` in `data.yaml`, or `classes.txt`"),
    ],
)
def test_a_file_that_says_nothing_of_use_is_refused_in_a_line(
    raw: Any, yaml: str | bytes, says: str
) -> None:
    raw.one("")
    raw.put("data.yaml", yaml)
    message, hint = raw.refusal()
    assert says in message
    assert hint


def test_without_pyyaml_the_extra_is_named(raw: Any) -> None:
    raw.one("")
    code = (
        f"import sys; sys.path[:0] = {[str(CHECKOUT), str(CHECKOUT / 'plugins')]!r}\n"
        "sys.modules['yaml'] = None\n"
        "from tfrecreg.testing import examples\n"
        "from tfrecreg.core.values.errors import MissingExtraError\n"
        "try:\n"
        f"    list(examples('yolo', {str(raw.path)!r}, []))\n"
        "except MissingExtraError as error:\n"
        "    print(error.message, error.extra, error.exit_code)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == (
        "reading `data.yaml` needs the extra `yaml`, which is not installed yaml 3"
    ), done.stderr


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
        message, hint = raw.refusal()
        assert message == "`images/classes.txt` and `labels/classes.txt` list different classes"
        assert hint == "--option classes=cat,dog names them in the order of their numbers"

    def test_an_option_can_name_them(self, raw: Any) -> None:
        self.images(raw)
        assert "lists the names of the classes" in raw.refusal()[0]
        assert classes(raw, classes=("a", "b")) == ["a", "b"]
        message, _ = raw.refusal(classes=("a", "a"))
        assert message == "the option `classes` has `a` twice"

    @pytest.mark.parametrize("text", ["", "cat\n\ndog\n"])
    def test_an_empty_line_is_no_class(self, raw: Any, text: str) -> None:
        self.images(raw)
        raw.put("classes.txt", text)
        message, _ = raw.refusal()
        assert message.startswith("`classes.txt` does not list the classes: line ")

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
        message, _ = raw.refusal()
        assert message.startswith("`data/obj.data` names `data/obj.names` for the classes")

    def test_another_name_is_taken_alone_or_named(self, raw: Any) -> None:
        self.images(raw)
        raw.put("pets.yaml", "train: images\n" + NAMES)
        assert classes(raw) == ["cat", "dog"]
        raw.put("other.yaml", "train: images\nnames: [x, y]\n")
        message, hint = raw.refusal()
        assert message == "several files may describe the dataset: `other.yaml` and `pets.yaml`"
        assert hint == "--option data=other.yaml"
        assert classes(raw, data="other.yaml") == ["x", "y"]
        message, _ = raw.refusal(data="../other.yaml")
        assert message == "the option `data` names `../other.yaml`, not a file in the raw folder"

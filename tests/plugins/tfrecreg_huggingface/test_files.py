"""The files that are read, by the README or by names; keys, remarks and damaged files."""

from __future__ import annotations

import sys

import pytest
from image_support import png

from tfrecreg.core.values.errors import MissingExtraError

from .conftest import Raw, media, pa

PNG = png(3, 2)
CONFIGS = """---
license: apache-2.0
dataset_info:
- config_name: en
  features:
  - name: image
    dtype: image
  - name: label
    dtype:
      class_label:
        names:
          '0': cat
          '1': dog
- config_name: fr
  features:
  - name: label
    dtype: int64
configs:
- config_name: en
  data_files:
  - split: train
    path: en/train-*
  - split: dev
    path:
    - en/dev-00000-of-00001.parquet
- config_name: fr
  data_files: fr/*.parquet
---
# Pets
"""


def rows(raw: Raw, *names: str) -> None:
    for number, name in enumerate(names):
        raw.table(name, {"n": pa.array([number])})


def splits(raw: Raw, *options: str) -> dict[str, str]:
    return {
        place.partition("/")[2]: place.partition("/")[0] for place in raw.made(*options).written
    }


def test_a_readme_chooses_files_splits_and_types(raw: Raw) -> None:
    for name in ("en/train-00000-of-00001", "en/dev-00000-of-00001"):
        raw.table(f"{name}.parquet", {"image": media(PNG), "label": pa.array([1])})
    rows(raw, "fr/a.parquet")
    raw.put("README.md", CONFIGS)
    made = raw.made("config=en")
    assert sorted(made.written) == [
        "train/en/train-00000-of-00001/00000000",
        "validation/en/dev-00000-of-00001/00000000",
    ]
    found = made.written["train/en/train-00000-of-00001/00000000"]
    assert found["image/class/text"] == b"dog"
    assert [(each.code, each.key) for each in made.remarks] == [("SRC117", "fr/a.parquet")]
    shown = raw.source("config=en").describe()
    assert (shown["configuration"], shown["columns"]) == ("en", "image, label")
    assert splits(raw, "config=fr") == {"fr/a/00000000": "train"}


def test_one_of_several_configurations_is_to_be_chosen(raw: Raw) -> None:
    rows(raw, "en/train-00000-of-00001.parquet", "fr/a.parquet")
    raw.put("README.md", CONFIGS)
    raw.error()
    raw.error("config=eng")
    raw.put(
        "README.md",
        CONFIGS.replace(
            "config_name: fr\n  data_files", "config_name: fr\n  default: true\n  data_files"
        ),
    )
    assert list(splits(raw)) == ["fr/a/00000000"]


def test_a_folder_is_a_configuration_without_a_readme(raw: Raw) -> None:
    rows(raw, "test_en/train-0.parquet", "fr/train-0.parquet", "fr/test-0.parquet")
    assert splits(raw, "config=test_en") == {"test_en/train-0/00000000": "train"}
    assert sorted(splits(raw, "config=fr").values()) == ["test", "train"]


@pytest.mark.parametrize(
    "header",
    [
        "a: [",
        "[1]",
        "a: !!python/object:os.system 1",
        "configs:\n- data_files:\n  - path: x",
        "configs:\n- data_dir: none",
        "configs:\n- data_files:\n  - {split: a, path: '*'}\n  - {split: b, path: '*'}",
        "configs:\n- data_files:\n  - {split: a, path: gone-*}",
        "configs:\n- data_files:\n  - {split: train.clean.100, path: '*'}",
        "dataset_info:\n  features:\n  - dtype:\n      class_label: {names: {'1': a}}",
    ],
    ids=lambda each: each[:40],
)
def test_a_header_that_cannot_be_used_is_refused(raw: Raw, header: str) -> None:
    rows(raw, "train.parquet")
    raw.put("README.md", f"---\n{header}\n---\n")
    assert "README.md" in raw.error().message


def test_columns_that_cannot_be_features_are_refused(raw: Raw) -> None:
    raw.error()
    raw.table("train.parquet", {"c": pa.array([None])})
    raw.error()
    raw.table("train.parquet", {"n": pa.array([1])}, {"n": {"_type": "Sequence"}})
    raw.error()
    kind = pa.struct([("b", pa.int64())])
    raw.table("train.parquet", {"a/b": pa.array([1]), "a": pa.array([{"b": 1}], kind)})
    raw.error()
    raw.table("train.parquet", {"n": pa.array([1]), "l": pa.array([[1]])})
    for option in ("columns=x", "key=x", "key=l"):
        raw.error(option)
    raw.table("test.parquet", {"n": pa.array(["x"])})
    raw.error()


def test_without_pyyaml_the_extra_is_named(raw: Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    rows(raw, "train.parquet")
    raw.put("README.md", CONFIGS)
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(MissingExtraError) as caught:
        raw.made()
    assert caught.value.exit_code == 3


def test_a_column_of_keys_names_the_items(raw: Raw) -> None:
    raw.table("train.parquet", {"id": pa.array(["a", "b", "a"]), "n": pa.array([1, 2, 3])}, rows=2)
    made = raw.made("key=id")
    assert {place: each["n"] for place, each in made.written.items()} == {
        "train/a": 1,
        "train/b": 2,
    }
    assert {key: code for key, (code, _) in made.skipped.items()} == {
        "train/a#train.parquet#2": "SRC114"
    }
    assert list(raw.made("key=n").written) == ["train/1", "train/2", "train/3"]


def test_what_is_not_parquet_is_refused(raw: Raw) -> None:
    path = raw.table("train.parquet", {"n": pa.array(range(1000))})
    whole = path.read_bytes()
    for data in (
        b"",
        b"version https://git-lfs.github.com/spec/v1\n",
        whole[:-10],
        b"PAR1" + (1 << 30).to_bytes(4, "little") + b"PAR1",
        whole[:-100] + bytes(92) + whole[-8:],
    ):
        path.write_bytes(data)
        raw.error()


def test_raw_files_are_the_base_of_inflation(raw: Raw) -> None:
    path = raw.table("train.parquet", {"t": pa.array(["x" * 1000] * 500)}, use_dictionary=False)
    (file,) = raw.source().raw_files()
    assert (file.path, file.stored) == ("train.parquet", path.stat().st_size)
    assert file.decoded > 500_000


def test_a_file_that_a_numbered_set_lacks_is_skipped(raw: Raw) -> None:
    rows(raw, "data/train-00000-of-00003-ab.parquet", "data/train-00002-of-00003-cd.parquet")
    made = raw.made()
    assert len(made.written) == 2
    assert {key: code for key, (code, _) in made.skipped.items()} == {
        "train/data/train-00001-of-00003*.parquet": "SRC112"
    }


SPLITS = """---
dataset_info:
  splits:
  - {name: train, num_examples: 1}
  - {name: val, num_examples: 1200}
  - {name: test, num_examples: 7}
  - {name: other}
  - 3
---
"""


def test_a_readme_with_other_numbers_of_rows_is_remarked_on(raw: Raw) -> None:
    rows(raw, "train.parquet", "val.parquet")
    raw.put("README.md", SPLITS)
    found = [(each.split, each.code, each.key) for each in raw.made().remarks]
    assert found == [("validation", "SRC120", "val"), ("train", "SRC120", "test")]
    # The user's own splits.
    assert [each.code for each in raw.made("splits=train=train*").remarks] == ["SRC117"]


def test_a_file_without_rows_is_remarked_on_and_changes_no_schema(raw: Raw) -> None:
    raw.table("train.parquet", {"n": pa.array([1, 2])})
    before = raw.source().schema()
    raw.table("test.parquet", {"n": pa.array([], pa.int64())})
    assert raw.source().schema() == before
    assert "min_fraction: 1" in before
    made = raw.made()
    assert [(each.split, each.code) for each in made.remarks] == [("test", "SRC118")]

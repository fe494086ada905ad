"""A split of a build or a release as a sequence: by its schema, verified against its manifest."""

from __future__ import annotations

import json
import pickle
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from package_support import CHECKOUT, plain_environment
from tests_support import flip

import tfrecreg
from tfrecreg.cli.digits import draw_digits
from tfrecreg.core.values.errors import (
    DamagedRecordError,
    ManifestError,
    NotHereError,
    RefusedError,
    UsageError,
)

TRAIN = "data/digits/digits-train.tfrecord-00000-of-00002"


@pytest.fixture
def source(digits_original: Path) -> tfrecreg.DataSource:
    return tfrecreg.data_source("digits@1.0.0", "train", registry=digits_original)


def test_elements_have_the_form_of_the_schema(source: tfrecreg.DataSource) -> None:
    assert len(source) == 200
    element = source[7]
    assert list(element) == [
        "image/class/label",
        "image/encoded",
        "image/format",
        "image/height",
        "image/width",
    ]
    assert element["image/format"] == b"png"
    assert element["image/height"] == 28
    assert type(element["image/class/label"]) is np.int64


def test_images_and_labels_are_those_of_the_raw_data(digits_original: Path) -> None:
    for name, count in (("train", 200), ("test", 60)):
        source = tfrecreg.data_source("digits", name, registry=digits_original, decode=True)
        found = sorted(
            (each["image/encoded"].tobytes(), int(each["image/class/label"])) for each in source
        )
        assert len(found) == count
        assert {each["image/encoded"].shape for each in source} == {(28, 28, 1)}
        if name == "train":
            images, labels = draw_digits(200, seed=1)
            expected = zip(images, labels, strict=True)
            assert found == sorted((image.tobytes(), int(label)) for image, label in expected)


def test_keys_come_with_the_elements(digits_original: Path) -> None:
    source = tfrecreg.data_source("digits", "train", registry=digits_original, with_key=True)
    keys = [key for key, _ in source]
    assert len(set(keys)) == 200
    assert [key for key, _ in source.__getitems__([5, 199, 0])] == [keys[5], keys[199], keys[0]]
    key, element = source[3]
    assert (key, source.key(3)) == (keys[3], keys[3])
    assert "image/encoded" in element


def test_expressions_for_splits(digits_original: Path) -> None:
    def count(split: str) -> int:
        return len(tfrecreg.data_source("digits", split, registry=digits_original))

    assert [count(split) for split in ("train[:80%]", "train[80%:]", "all")] == [160, 40, 260]
    assert count("train[1shard:]+test[10:20]") == 110
    with pytest.raises(UsageError, match="has the splits `test` and `train`: name one") as caught:
        tfrecreg.data_source("digits", registry=digits_original)
    assert "for instance `split='test'`" in caught.value.message


def test_only_shards_of_the_named_splits_are_needed(digits_registry: Path) -> None:
    for path in digits_registry.glob("data/digits/digits-test*"):
        path.unlink()
    assert len(tfrecreg.data_source("digits", "train", registry=digits_registry)) == 200
    with pytest.raises(UsageError, match="2 of 2 shards of the split `test` of `digits` are miss"):
        tfrecreg.data_source("digits", "test", registry=digits_registry)


def test_the_folder_of_a_build_brings_its_indexes(digits_original: Path, cache: Path) -> None:
    """As it is where somebody copied it to."""
    folder = digits_original / "data/digits"
    source = tfrecreg.data_source(folder, "train", with_key=True, raw=True)
    other = tfrecreg.data_source(
        "digits", "train", registry=digits_original, with_key=True, raw=True
    )
    assert list(source) == list(other)
    assert source.identity == other.identity
    assert not cache.exists()


def test_the_manifest_in_a_folder_judges_its_shards(digits_registry: Path) -> None:
    folder = digits_registry / "data/digits"
    tfrecreg.data_source(folder, "train", verify=True)
    path = digits_registry / TRAIN
    flip(path, 30)
    with pytest.raises(RefusedError, match="do not match the manifest"):
        tfrecreg.data_source(folder, "train", verify=True)
    path.unlink()
    with pytest.raises(UsageError, match="1 of 2 shards of the split `train`"):
        tfrecreg.data_source(folder, "train")
    (folder / "manifest.json").write_text("{}")
    with pytest.raises(ManifestError, match="has no `format_version`"):
        tfrecreg.data_source(folder, "train")


def test_a_pickle_is_small_and_complete(source: tfrecreg.DataSource, digits_original: Path) -> None:
    paths = [*digits_original.glob("data/digits/*train*"), *digits_original.glob("data/*/index/*")]
    data = pickle.dumps(source)
    assert len(data) - sum(len(str(path)) for path in paths) < 1000
    copy = pickle.loads(data)
    assert list(copy) == list(source)
    assert copy.identity == source.identity


def test_gzip_and_plain_have_the_same_identity(digits_registry: Path) -> None:
    before = tfrecreg.data_source("digits", "train", registry=digits_registry)
    elements, state = list(before), before.order(1).state(50)
    digits = tfrecreg.open(digits_registry)["digits"]
    digits.build(compression="gzip", shards=2, base="none")
    after = tfrecreg.data_source("digits", "train", registry=digits_registry)
    assert list(after) == elements
    assert len(after.from_state(state)) == 150
    digits.build(shards=3, base="none")
    other = tfrecreg.data_source("digits", "train", registry=digits_registry)
    with pytest.raises(UsageError, match="belongs to another order"):
        other.from_state(state)


# --- what is refused


def test_bytes_that_are_elsewhere(digits_registry: Path) -> None:
    shutil.rmtree(digits_registry / "data")
    shutil.rmtree(digits_registry / "versions", ignore_errors=True)
    with pytest.raises(NotHereError, match=r"the bytes of `digits@1.0.0` are not here"):
        tfrecreg.data_source("digits@1.0.0", "train", registry=digits_registry)


def test_a_shard_of_another_size(digits_registry: Path) -> None:
    path = digits_registry / TRAIN
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data[:1000])
    with pytest.raises(RefusedError) as caught:
        tfrecreg.data_source("digits", "train", registry=digits_registry)
    assert caught.value.message.endswith(f"should have {len(data)} bytes but has 1000")
    assert caught.value.exit_code == 1


def test_a_damaged_record_is_named_with_its_key(digits_registry: Path) -> None:
    path = digits_registry / TRAIN
    places = tfrecreg.Records(path)
    key = tfrecreg.data_source("digits", "train", registry=digits_registry).key(12)
    at = int(places.offsets[12])
    flip(path, at + 20)
    source = tfrecreg.data_source("digits", "train", registry=digits_registry)
    for read in (lambda: source[12], lambda: source.__getitems__([11, 12])):
        with pytest.raises(DamagedRecordError) as caught:
            read()
        message = caught.value.message
        assert message.startswith(f"record 12 of `{path}`, at byte {at}, is damaged: CRC002")
        assert message.endswith(f"; its key is `{key}`")
    skipping = tfrecreg.data_source(
        "digits", "train", registry=digits_registry, damaged="skip", max_damaged=1
    )
    assert len(list(skipping)) == 199
    assert skipping.skipped[0].reason.endswith(f"; its key is `{key}`")


def test_digests_may_be_verified_first(digits_registry: Path) -> None:
    tfrecreg.data_source("digits@1.0.0", "train", registry=digits_registry, verify=True)
    path = digits_registry / TRAIN
    flip(path, path.stat().st_size - 1)
    tfrecreg.data_source("digits", "test", registry=digits_registry, verify=True)
    with pytest.raises(RefusedError) as caught:
        tfrecreg.data_source("digits", "train", registry=digits_registry, verify=True)
    assert "should have the blake3" in caught.value.message
    assert caught.value.hint == "tfrecreg check digits"


def test_an_index_that_belongs_to_other_bytes(digits_registry: Path) -> None:
    """Its records are found by the shard itself, and its keys are not theirs."""
    folder = digits_registry / "data/digits/index"
    one, other = sorted(folder.glob("*train*"))
    before = list(tfrecreg.data_source("digits", "train", registry=digits_registry))
    shutil.copy(other, one)
    assert list(tfrecreg.data_source("digits", "train", registry=digits_registry)) == before
    source = tfrecreg.data_source("digits", "train", registry=digits_registry, with_key=True)
    assert [element for _, element in source[100:]] == before[100:]
    with pytest.raises(ManifestError) as caught:
        source[0]
    assert caught.value.message.startswith(
        f"`index/{one.name}` is not the index that the manifest names: its digest should be "
    )


def test_an_index_that_is_damaged(digits_registry: Path) -> None:
    path = sorted((digits_registry / "data/digits/index").glob("*train*"))[0]
    flip(path, 100)
    source = tfrecreg.data_source("digits", "train", registry=digits_registry)
    assert len(list(source)) == 200
    with pytest.raises(ManifestError, match="was changed after it was written"):
        source.key(0)


def test_a_state_of_another_version(digits_registry: Path, source: tfrecreg.DataSource) -> None:
    state = json.loads(json.dumps(source.order(3).state(10)))
    same = tfrecreg.data_source("digits@1.0.0", "train", registry=digits_registry)
    assert len(same.from_state(state)) == 190
    for split in ("test", "train[:199]"):
        other = tfrecreg.data_source("digits@1.0.0", split, registry=digits_registry)
        with pytest.raises(UsageError, match="belongs to another order"):
            other.from_state(state)


def test_a_build_or_a_release_is_a_target(digits_original: Path) -> None:
    opened = tfrecreg.open(digits_original)
    for reference in ("digits", "digits@1.0.0"):
        found = opened.find(reference)
        source = tfrecreg.data_source(found, "train", with_key=True)
        assert repr(source) == f"<DataSource 200 records of {reference}>"
        assert source[3][0] == source.key(3)


def test_a_reference_stands_alone(digits_original: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read together with other targets"):
        tfrecreg.data_source(["digits", "digits@1.0.0"], "train", registry=digits_original)


def test_few_features_are_read_alone(
    digits_original: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"registry": digits_original, "with_digest": True}
    whole = tfrecreg.data_source("digits", "train", decode=True, **options)
    some = ["image/class/label", "image/encoded"]
    chosen = tfrecreg.data_source("digits", "train", decode=True, features=some, **options)
    assert sorted(chosen[3]) == [*some, "record/digest"]
    assert chosen[3]["image/encoded"].tolist() == whole[3]["image/encoded"].tolist()
    batch = next(iter(chosen.batches(4)))
    assert sorted(batch) == [*some, "record/digest"]
    assert chosen.order(seed=1).state(7) == whole.order(seed=1).state(7)
    for each in tfrecreg.data_source(
        "digits", ["train", "test"], features="image/width", **options
    ):
        assert sorted(each[0]) == ["image/width", "record/digest"]
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    monkeypatch.setitem(sys.modules, "PIL", None)
    label = tfrecreg.data_source("digits", "train", decode=True, features=some[:1], **options)
    assert label[3]["image/class/label"] == whole[3]["image/class/label"]
    with pytest.raises(UsageError) as caught:
        tfrecreg.data_source("digits", "train", features=["image/hight"], **options)
    assert caught.value.message == (
        "the schema has no feature `image/hight`; did you mean `image/height`?"
    )
    assert "image/class/label" in str(caught.value.hint)


def test_what_cannot_be_decoded(digits_original: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the schema has no feature `picture`"):
        tfrecreg.data_source("digits", "train", registry=digits_original, decode="picture")
    schema = tmp_path / "x.pbtxt"
    schema.write_text('feature { name: "image/height" type: INT shape {} }\n')
    with pytest.raises(UsageError, match="no schema says which features are images"):
        tfrecreg.data_source(
            "digits", "train", registry=digits_original, schema=schema, decode=True
        )
    source = tfrecreg.data_source(
        "digits", "train", registry=digits_original, decode=["image/height"]
    )
    with pytest.raises(RefusedError, match=r"has numbers in `image/height`"):
        source[0]


LIGHT = """
import sys, tfrecreg
source = tfrecreg.data_source("digits@1.0.0", "train", registry=sys.argv[1])
assert len(list(source)) == len(source.__getitems__(source.order(1)[:])) == 200
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


@pytest.mark.medium
def test_nothing_heavy_is_imported(digits_original: Path, tmp_path: Path) -> None:
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-c", LIGHT, str(digits_original)],
        env=plain_environment(tmp_path, PYTHONPATH=str(CHECKOUT)),
        capture_output=True,
        text=True,
        check=True,
    )
    heavy = {"tensorflow", "dvc", "apache_beam", "pandas", "pyarrow", "PIL", "torch"}
    assert set(done.stdout.split()) & heavy == set()

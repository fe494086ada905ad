"""TFRecords that other tools wrote and published, without a registry."""

from __future__ import annotations

import pickle
import shutil
from collections import Counter
from pathlib import Path

import pytest

import tfrecreg
from tfrecreg.core.values.errors import RefusedError, UsageError
from tfrecreg.core.values.shards import parse_shard_name

pytestmark = pytest.mark.realdata


@pytest.fixture
def folder(realdata: Path, tmp_path: Path) -> Path:
    """A copy, so that nothing is written beside the originals."""
    return Path(shutil.copytree(realdata / "tfrecord", tmp_path / "tfrecord"))


@pytest.mark.slow
def test_every_published_file_is_a_sequence(folder: Path) -> None:
    seen: Counter[str] = Counter()
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or parse_shard_name(path.name) is None:
            continue
        source = tfrecreg.data_source(path, raw=True)
        payloads = list(source)
        assert len(source) == len(payloads)
        assert source.__getitems__(range(len(source))) == payloads
        assert [source[at] for at in range(0, len(source), 97)] == payloads[::97]
        assert list(pickle.loads(pickle.dumps(source))) == payloads
        assert sorted(source.order(seed=1)) == list(range(len(source)))
        certificate = source.certificate()
        certificate.add_payloads(source.__getitems__(source.order(seed=1)))
        assert source.report(certificate).is_complete
        try:
            assert sum(1 for _ in tfrecreg.data_source(path)) == len(source)
            seen["examples"] += 1
        except RefusedError as error:
            reasons = {
                "is not a `tf.train.Example`": "others",
                "and among its lists": "twice named",
            }
            seen[next((reasons[each] for each in reasons if each in error.message), path.name)] += 1
    assert set(seen) == {"examples", "others", "twice named"}
    assert seen["twice named"] == 1  # SequenceExamples of TensorFlow Transform's tests
    assert seen["examples"] > 50
    assert seen["others"] > 20


def test_images_of_another_tool_are_decoded(folder: Path) -> None:
    source = tfrecreg.data_source(folder / "raccoon/data/test.record", decode="image/encoded")
    assert len(source) == 40
    for element in source:
        size = element["image/height"][0], element["image/width"][0], 3
        assert element["image/encoded"].shape == size
        assert len(element["image/object/bbox/xmin"]) == len(element["image/object/class/label"])


def test_gzip_without_its_suffix_is_its_plain_twin(folder: Path) -> None:
    zipped = tfrecreg.data_source(f"{folder}/ydf/toy.tfe-tfrecord-*")
    plain = tfrecreg.data_source(f"{folder}/ydf/toy.nocompress-tfe-tfrecord-*")
    assert [str(each) for each in zipped] == [str(each) for each in plain]
    assert len(plain) == 4


def test_what_is_no_tfrecord_is_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match="no valid record in "):
        tfrecreg.data_source(folder / "grain/digits.array_record-00000-of-00002")

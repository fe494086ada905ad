"""`load` of SequenceExamples, compared with `tf.io.parse_sequence_example` by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from check_support import framed
from sequences_support import SCHEMA, tf_sequence, tf_specs, video, video_steps

import tfrecreg as tr
from tfrecreg.core.values.errors import UsageError

tf = pytest.importorskip("tensorflow")

COUNT = 11


@pytest.fixture(scope="module")
def payloads() -> list[bytes]:
    return [video(tf, number) for number in range(COUNT)]


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory, payloads: list[bytes]) -> tr.Registry:
    """A registry with an adopted dataset of SequenceExamples, whose schema is drafted."""
    folder = tmp_path_factory.mktemp("videos")
    raw = folder / "raw"
    raw.mkdir()
    (raw / "train-00000-of-00002.tfrecord").write_bytes(framed(*payloads[:6]))
    (raw / "train-00001-of-00002.tfrecord").write_bytes(framed(*payloads[6:]))
    registry = tr.init(folder / "registry", with_dvc=False)
    registry["videos"].adopt(str(raw))
    return registry


def rows(value: Any) -> Any:
    """The values of a tensor of any kind as lists."""
    if isinstance(value, tf.sparse.SparseTensor):
        value = tf.RaggedTensor.from_sparse(value)
    if isinstance(value, tf.RaggedTensor):
        return value.to_list()
    found = value.numpy()
    return found if isinstance(found, bytes) else found.tolist()


def by_hand(payloads: list[bytes], *names: str) -> Iterator[tuple[str, Any]]:
    """The named lists of a batch, as TensorFlow parses them."""
    context, lists = tf_specs(tf)
    first, steps, lengths = tf.io.parse_sequence_example(tf.constant(payloads), context, lists)
    for name in names:
        if name in first:
            yield name, rows(first[name])
        elif name in lengths:
            dense = steps[name].numpy().tolist()
            sizes = lengths[name].numpy().tolist()
            yield name, [row[:size] for row, size in zip(dense, sizes, strict=True)]
        else:
            yield name, rows(steps[name])


NAMES = ("action", "frame", "id", "labels", "rgb", "tokens")


@pytest.mark.medium
@pytest.mark.parametrize("size", [4, COUNT])
def test_batches_are_what_tensorflow_parses(
    videos: tr.Registry, payloads: list[bytes], size: int
) -> None:
    dataset = tr.load("videos", "train", registry=videos, batch_size=size)
    assert len(dataset) == -(-COUNT // size)
    start = 0
    for batch in dataset:
        assert list(batch) == list(NAMES)
        expected = dict(by_hand(payloads[start : start + size], *NAMES))
        assert {name: rows(value) for name, value in batch.items()} == expected
        start += size
    assert start >= COUNT
    assert batch["rgb"].shape.as_list()[1:] == [None, 4]
    assert (batch["rgb"].ragged_rank, batch["tokens"].ragged_rank) == (1, 2)


@pytest.mark.medium
def test_single_elements_are_those_of_data_source(videos: tr.Registry) -> None:
    source = tr.data_source("videos", "train", registry=videos)
    elements = list(tr.load("videos", "train", registry=videos, ragged=True))
    assert len(elements) == len(source) == COUNT
    for element, expected in zip(elements, source, strict=True):
        assert list(element) == list(expected)
        for name in ("action", "frame", "labels", "rgb"):
            assert rows(element[name]) == expected[name].tolist()
        assert rows(element["tokens"]) == [each.tolist() for each in expected["tokens"]]


@pytest.mark.medium
def test_the_draft_of_an_adoption_reads_as_the_schema_by_hand(
    videos: tr.Registry, tmp_path: Path
) -> None:
    path = tmp_path / "s.pbtxt"
    path.write_text(SCHEMA)
    for drafted, own in zip(
        tr.load("videos", "train", registry=videos, ragged=True),
        tr.load("videos", "train", registry=videos, schema=path, ragged=True),
        strict=True,
    ):
        for name in NAMES:
            assert rows(drafted[name]) == rows(own[name])


@pytest.mark.medium
def test_lists_are_shuffled_cached_and_chosen(videos: tr.Registry) -> None:
    names = ["id", "rgb"]
    dataset = tr.load(
        "videos", "train", registry=videos, features=names, shuffle=True, seed=1, cache=True
    )
    found = {element["id"].numpy(): rows(element["rgb"]) for element in dataset}
    assert list(dataset.element_spec) == names
    for number in range(COUNT):
        _, lists = video_steps(number)
        expected = tf.constant(lists["rgb"], tf.float32).numpy().tolist()
        assert found[b"video%d" % number] == expected


@pytest.mark.medium
def test_lists_are_padded(videos: tr.Registry, payloads: list[bytes]) -> None:
    (batch,) = tr.load("videos", "train", registry=videos, batch_size=COUNT, pad_to="longest")
    most = max(len(video_steps(number)[1]["rgb"]) for number in range(COUNT))
    assert batch["rgb"].shape == (COUNT, most, 4)
    assert batch["tokens"].shape[:2] == (COUNT, most)
    ends = {f"video{number}": len(video_steps(number)[1]["rgb"]) for number in range(COUNT)}
    for padded, name in zip(batch["rgb"].numpy(), batch["id"].numpy(), strict=True):
        assert not padded[ends[name.decode()] :].any()
    fixed = tr.load("videos", "train", registry=videos, features=["rgb", "action"], pad_to=9)
    assert {name: spec.shape.as_list() for name, spec in fixed.element_spec.items()} == {
        "action": [9],
        "rgb": [9, 4],
    }
    source = tr.data_source("videos", "train", registry=videos)
    for element, expected in zip(fixed, source, strict=True):
        steps = len(expected["rgb"])
        assert element["rgb"].numpy()[:steps].tolist() == expected["rgb"].tolist()
        assert not element["rgb"].numpy()[steps:].any()
    with pytest.raises(UsageError, match="the steps of `tokens` differ in length") as caught:
        tr.load("videos", "train", registry=videos, pad_to=9)
    assert 'pad_to="longest"' in caught.value.message
    short = tr.load("videos", "train", registry=videos, features=["rgb"], pad_to=1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="more values than the length 1"):
        list(short)


BAD = {
    "it is not a `tf.train.SequenceExample`": b"text",
    "Feature list 'rgb' is required": tf_sequence(
        tf, {"id": [b"x"], "labels": [1]}, {"action": [[1]]}
    ),
    "does not parse": tf_sequence(
        tf, {"id": [b"x"], "labels": [1]}, {"action": [[1]], "rgb": [[0.5] * 3]}
    ),
}


@pytest.mark.medium
@pytest.mark.parametrize("reason", BAD)
@pytest.mark.parametrize("size", [None, 2])
def test_a_record_that_does_not_parse_is_named(
    videos: tr.Registry, payloads: list[bytes], tmp_path: Path, reason: str, size: int | None
) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    (raw / "train.tfrecord").write_bytes(framed(*payloads[:3], BAD[reason], *payloads[3:6]))
    registry = tr.init(tmp_path / "registry", with_dvc=False)
    (tmp_path / "registry/schemas").mkdir(exist_ok=True)
    (tmp_path / "registry/schemas/bad.pbtxt").write_text("# nothing is known\n")
    registry["bad"].adopt(str(raw))
    path = tmp_path / "s.pbtxt"
    path.write_text(SCHEMA)
    dataset = tr.load("bad", "train", registry=registry, schema=path, batch_size=size)
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        list(dataset)
    message = caught.value.message.replace("\\'", "'")
    assert "record 3" in message
    assert reason in message

"""Elements of SequenceExamples, compared with what TensorFlow parses."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from foreign_support import field
from sequences_support import SCHEMA, tf_sequence, tf_specs, video

import tfrecreg as tr
from tfrecreg.core.example.model import encode
from tfrecreg.core.example.values import int64_feature
from tfrecreg.core.values.errors import RefusedError, UsageError
from tfrecreg.torch import Collate

from .conftest import Write

COUNT = 20


@pytest.fixture(scope="module")
def tf() -> Any:
    return pytest.importorskip("tensorflow")


@pytest.fixture
def videos(tf: Any, write: Write) -> Path:
    payloads = [video(tf, number) for number in range(COUNT)]
    write("videos/train-00000-of-00002.tfrecord", payloads[:12])
    return write("videos/train-00001-of-00002.tfrecord", payloads[12:]).parent


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    path = tmp_path / "videos.pbtxt"
    path.write_text(SCHEMA)
    return path


def same(found: Any, expected: Any) -> None:
    """The same values in the same shape and type."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(found, expected)


def test_elements_by_a_schema_are_what_tensorflow_parses(
    tf: Any, videos: Path, schema: Path
) -> None:
    source = tr.data_source(videos, schema=schema)
    payloads = tr.data_source(videos, raw=True)
    context, lists = tf_specs(tf)
    assert len(source) == COUNT
    for element, payload in zip(source, payloads, strict=True):
        first, steps = tf.io.parse_single_sequence_example(payload, context, lists)
        assert list(element) == sorted([*first, *steps])
        assert element["id"] == first["id"].numpy()
        same(element["labels"], first["labels"].numpy())
        same(element["action"], steps["action"].numpy())
        same(element["rgb"], steps["rgb"].numpy())
        same(element["frame"], steps["frame"].numpy())
        rows = list(steps["tokens"])
        assert len(element["tokens"]) == len(rows)
        for found, expected in zip(element["tokens"], rows, strict=True):
            same(found, expected.numpy())


def test_without_a_schema_every_list_is_a_list_of_arrays(videos: Path, schema: Path) -> None:
    typed = tr.data_source(videos, schema=schema)
    for element, expected in zip(tr.data_source(videos), typed, strict=True):
        assert {*expected} - {*element} <= {"frame"}
        for name in ("action", "frame", "rgb", "tokens"):
            steps = element.get(name, [])
            assert isinstance(steps, list)
            assert len(steps) == len(expected[name])
            for step, wanted in zip(steps, expected[name], strict=True):
                same(step, np.atleast_1d(np.asarray(wanted, step.dtype)))


def test_many_records_at_once_are_those_one_by_one(videos: Path, schema: Path) -> None:
    for source in (tr.data_source(videos, schema=schema), tr.data_source(videos)):
        together = source.__getitems__(range(COUNT))
        for number, element in enumerate(together):
            assert repr(element) == repr(source[number])
        assert repr(pickle.loads(pickle.dumps(source))[3]) == repr(source[3])


def test_batches_stack_what_has_one_shape(videos: Path, schema: Path) -> None:
    source = tr.data_source(videos, schema=schema)
    (batch,) = source.batches(8, range(8))
    assert batch["id"].shape == (8,)
    assert [each.shape[1:] for each in batch["rgb"]] == [(4,)] * 8
    assert [len(each) for each in batch["tokens"]] == [len(each) for each in batch["action"]]


def test_pytorch_gets_padded_steps_and_their_mask(
    videos: Path, schema: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(from_numpy=np.asarray))
    source = tr.data_source(videos, schema=schema)
    elements = source.__getitems__([0, 1, 2])
    batch = Collate(source, text=["id"])(elements)
    counts = [len(each["rgb"]) for each in elements]
    assert batch["id"] == ["video0", "video1", "video2"]
    assert batch["rgb"].shape == (3, max(counts), 4)
    assert batch["rgb/mask"].sum(1).tolist() == counts
    assert batch["rgb"][1, : counts[1]].tolist() == elements[1]["rgb"].tolist()
    assert [[each.tolist() for each in steps] for steps in batch["tokens"]] == [
        [each.tolist() for each in element["tokens"]] for element in elements
    ]
    assert batch["frame"][1] == elements[1]["frame"].tolist()


def test_members_of_a_mixture_have_lists_alike(videos: Path, schema: Path) -> None:
    source = tr.data_source(videos, schema=schema)
    mixture = tr.mixture([(source, 2), (source[:5], 1)], features=["id", "rgb"])
    assert list(mixture[0]) == list(source.with_features(iter(["id", "rgb"]))[0]) == ["id", "rgb"]
    with pytest.raises(UsageError, match="differ in `action`: int64 of shape"):
        tr.mixture([(source, 2), (tr.data_source(videos), 1)])


def test_a_context_alone_has_the_bytes_of_an_example(tf: Any, write: Write, tmp_path: Path) -> None:
    path = write("a.tfrecord", [encode({"n": int64_feature(3)}), b""])
    schema = tmp_path / "s.pbtxt"
    schema.write_text(
        'feature { name: "n" type: INT } feature { name: "##SEQUENCE##" type: STRUCT '
        'struct_domain { feature { name: "x" type: FLOAT shape { dim { size: 2 } dim { size: 3 } }'
        " } } }"
    )
    first, second = tr.data_source(path, schema=schema)
    assert first["n"].tolist() == [3]
    assert first["x"].shape == second["x"].shape == (0, 2, 3)
    payload = tf_sequence(tf, {}, {"x": [[0.5] * 6, [1.5] * 6]})
    (element,) = tr.data_source(write("b.tfrecord", [payload]), schema=schema)
    assert element["x"].shape == (2, 2, 3)


MISFITS: dict[str, tuple[dict[str, Any], str]] = {
    "a list is missing": (
        {"rgb": None},
        "`rgb` should be float of shape (any, 4), it lacks the list",
    ),
    "another type": (
        {"action": [[0], [b"x"]]},
        "`action` should be int64 of shape (any,), found bytes in step 1",
    ),
    "another type in steps that vary": (
        {"tokens": [[0], [0.5]]},
        "`tokens` should be int64 of shape (any, any), found float in step 1",
    ),
    "too few values": (
        {"rgb": [[0.5] * 4, [0.5] * 3]},
        "`rgb` should be float of shape (any, 4), found 3 values in step 1",
    ),
    "values that would make whole steps together": (
        {"rgb": [[0.5] * 3, [0.5] * 5]},
        "`rgb` should be float of shape (any, 4), found 3 values in step 0",
    ),
    "a step without a kind": (
        {"rgb": [[0.5] * 4, None]},
        "`rgb` should be float of shape (any, 4), found no kind in step 1",
    ),
}


@pytest.mark.parametrize("case", MISFITS)
def test_what_does_not_fit_the_schema_is_refused_as_by_tensorflow(
    tf: Any, write: Write, schema: Path, case: str
) -> None:
    change, message = MISFITS[case]
    lists = {"action": [[0], [1]], "rgb": [[0.5] * 4] * 2, **change}
    lists = {name: steps for name, steps in lists.items() if steps is not None}
    payload = tf_sequence(tf, {"id": [b"x"], "labels": [1]}, lists)
    source = tr.data_source(write("a.tfrecord", [payload]), schema=schema)
    with pytest.raises(RefusedError) as caught:
        source[0]
    assert message in caught.value.message
    with pytest.raises((tf.errors.InvalidArgumentError, tf.errors.InternalError)):
        tf.io.parse_single_sequence_example(payload, *tf_specs(tf))


def test_a_step_without_a_kind_is_empty_where_steps_vary(
    tf: Any, write: Write, schema: Path
) -> None:
    lists = {"action": [[0], [1]], "rgb": [[0.5] * 4] * 2, "tokens": [None, [3]]}
    payload = tf_sequence(tf, {"id": [b"x"], "labels": [1]}, lists)
    (element,) = tr.data_source(write("a.tfrecord", [payload]), schema=schema)
    _, steps = tf.io.parse_single_sequence_example(payload, *tf_specs(tf))
    assert [each.tolist() for each in element["tokens"]] == steps["tokens"].to_list() == [[], [3]]
    (element,) = tr.data_source(write("a.tfrecord", [payload]))
    assert [(each.tolist(), each.dtype) for each in element["tokens"]] == [
        ([], np.int64),
        ([3], np.int64),
    ]


def test_lists_of_unknown_form_are_not_left_out_silently(
    tf: Any, write: Write, schema: Path
) -> None:
    path = write("a.tfrecord", [video(tf, 1) + field(2, field(7, b"new"))])
    twice = write("b.tfrecord", [tf_sequence(tf, {"x": [1]}, {"x": [[1]]})])
    with pytest.raises(RefusedError, match="has `x` in its context and among its lists"):
        tr.data_source(twice)[0]
    with pytest.raises(RefusedError, match=r"it has lists, but does not parse"):
        tr.data_source(path)[0]
    with pytest.raises(RefusedError, match=r"is not a `tf\.train\.SequenceExample`"):
        tr.data_source(path, schema=schema)[0]


def test_images_in_a_list_are_decoded(
    tf: Any, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("PIL")
    pixels = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
    png = tf.io.encode_png(pixels).numpy()
    payloads = [tf_sequence(tf, {}, {"image": [[png]] * steps}) for steps in (2, 1)]
    path = write("a.tfrecord", payloads)
    schema = tmp_path / "s.pbtxt"
    schema.write_text(
        'feature { name: "##SEQUENCE##" type: STRUCT struct_domain { feature { name: "image" '
        "type: BYTES value_counts { value_count {} value_count { min: 1 max: 1 } } "
        "image_domain {} } } }"
    )
    for source in (
        tr.data_source(path, schema=schema, decode=True),
        tr.data_source(path, decode=["image"]),
    ):
        images = source[0]["image"]
        assert len(images) == 2
        np.testing.assert_array_equal(images[1], pixels)
    with pytest.raises(UsageError, match="has no feature `no`"):
        tr.data_source(path, schema=schema, decode="no")
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(from_numpy=np.asarray))
    source = tr.data_source(path, schema=schema, decode=True)
    for pad in (False, True):
        (first, second) = Collate(source, pad_images=pad)(list(source))["image"]
        np.testing.assert_array_equal([*first, *second], [pixels] * 3)

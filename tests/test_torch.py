"""`tfrecreg.torch`: a sampler with a state, alone and in a StatefulDataLoader, and collation."""

from __future__ import annotations

import io
import json
import pickle
import random
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tfrecreg
from tfrecreg.core.values.errors import MissingExtraError, RefusedError, UsageError
from tfrecreg.torch import Collate, OrderSampler


@pytest.fixture
def source(digits_original: Path) -> tfrecreg.DataSource:
    return tfrecreg.data_source(
        "digits@1.0.0", "train", registry=digits_original, decode=True, with_digest=True
    )


# --- the sampler, without PyTorch


def test_each_iteration_is_the_next_epoch(source: tfrecreg.DataSource) -> None:
    sampler = OrderSampler(source, epoch=3, seed=1, host=1, hosts=2)
    for epoch in (3, 4):
        assert (sampler.epoch, len(sampler)) == (epoch, 100)
        assert list(sampler) == list(source.order(1, epoch, host=1, hosts=2))
    sampler.set_epoch(9)
    assert list(sampler) == list(source.order(1, 9, host=1, hosts=2))


def test_a_state_goes_on_with_other_ranks(source: tfrecreg.DataSource) -> None:
    samplers = [OrderSampler(source, epoch=2, seed=1, host=rank, hosts=2) for rank in range(2)]
    walks = [iter(each) for each in samplers]
    seen = [next(walk) for walk in walks for _ in range(31)]
    state = json.loads(json.dumps(samplers[0].state_dict()))
    for rank in range(3):
        other = OrderSampler(source, seed=1, host=rank, hosts=3)
        other.load_state_dict(state)
        assert other.epoch == 2
        seen += other
        assert (other.epoch, len(list(other))) == (3, 67 - (rank == 2))
    assert sorted(seen) == list(range(200))


def test_weights_blocks_and_mixtures_have_states(
    source: tfrecreg.DataSource, digits_original: Path
) -> None:
    mixture = tfrecreg.mixture({"digits": 3, "digits@1.0.0": 1}, "train", registry=digits_original)
    cases: list[tuple[Any, dict[str, Any]]] = [
        (source, {"seed": 1, "weights": list(range(200))}),
        (source, {"seed": 1, "block": 8}),
        (mixture, {}),
    ]
    for given, options in cases:
        sampler = OrderSampler(given, **options)
        walk = iter(sampler)
        seen = [next(walk) for _ in range(50)]
        other = OrderSampler(given, **options)
        other.load_state_dict(json.loads(json.dumps(sampler.state_dict())))
        assert seen + list(other) == list(given.order(**options))


def test_a_state_of_other_records_is_refused(
    source: tfrecreg.DataSource, digits_original: Path
) -> None:
    other = tfrecreg.data_source("digits@1.0.0", "test", registry=digits_original)
    with pytest.raises(UsageError, match="belongs to another order"):
        OrderSampler(source).load_state_dict(OrderSampler(other).state_dict())


@pytest.mark.parametrize(
    ("other", "name", "values"),
    [
        ({"seed": 2}, "seed", "`1`, but here it is `2`"),
        ({"seed": 1, "drop_remainder": True}, "drop_remainder", "`False`, but here it is `True`"),
        ({"seed": 1, "block": 8}, "block", "`None`, but here it is `.*'records': 8.*`"),
        ({"seed": 1, "weights": [1] * 200}, "weights", None),
    ],
)
def test_the_state_of_another_order_is_refused(
    source: tfrecreg.DataSource, other: dict[str, Any], name: str, values: str | None
) -> None:
    state = OrderSampler(source, seed=1).state_dict()
    sampler = OrderSampler(source, **other)
    with pytest.raises(UsageError, match=f"its `{name}` is {values}" if values else "weights"):
        sampler.load_state_dict(state)
    assert (sampler.epoch, len(sampler)) == (0, 200)


@pytest.mark.parametrize("more", [{}, {"hosts": 7, "drop_remainder": True}])
def test_a_state_at_the_end_of_an_epoch_begins_the_next_one(
    source: tfrecreg.DataSource, more: dict[str, Any]
) -> None:
    """Also where a remainder, that no rank gets, is left."""
    sampler = OrderSampler(source, seed=1, **more)
    walk = iter(sampler)
    for _ in range(len(sampler)):
        next(walk)
    other = OrderSampler(source, seed=1, **more)
    other.load_state_dict(sampler.state_dict())
    assert (other.epoch, list(other)) == (1, list(source.order(1, 1, **more)))


def test_consumed_numbers_can_be_said(source: tfrecreg.DataSource) -> None:
    """Workers of a plain loader take numbers ahead."""
    sampler = OrderSampler(source, seed=1)
    numbers = iter(sampler)
    taken = [next(numbers) for _ in range(50)]
    other = OrderSampler(source, seed=1)
    other.load_state_dict(sampler.state_dict(20))
    assert [*taken[:20], *other] == list(source.order(1))
    with pytest.raises(UsageError, match="`done` should be a number from 0 to 200, found 201"):
        sampler.state_dict(201)


# --- torchdata


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated:UserWarning")  # torchdata calls it
@pytest.mark.parametrize("workers", [0, 2])
def test_a_stateful_loader_saves_and_restores_it(source: tfrecreg.DataSource, workers: int) -> None:
    """Stopped three times, with other workers; what they read ahead comes again."""
    pytest.importorskip("torch", reason="PyTorch is not installed")
    loaders = pytest.importorskip(
        "torchdata.stateful_dataloader", reason="torchdata is not installed"
    )
    chance = random.Random(workers)
    certificate = source.certificate()
    state = None
    for stop in (chance.randint(1, 8), chance.randint(1, 8), None):
        loader = loaders.StatefulDataLoader(
            source,
            batch_size=8,
            sampler=OrderSampler(source, seed=1),
            num_workers=workers,
            collate_fn=Collate(source),
        )
        if state is not None:
            loader.load_state_dict(state)
        for at, batch in enumerate(loader, 1):
            certificate.add(batch["record/digest"])
            if at == stop:
                break
        state = pickle.loads(pickle.dumps(loader.state_dict()))
    assert source.report(certificate).is_complete
    certificate = source.certificate()
    for batch in loader:
        certificate.add(batch["record/digest"])
    assert source.report(certificate).is_complete


# --- collation


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    """PyTorch, or NumPy in its place."""
    try:
        return import_module("torch")
    except ModuleNotFoundError:
        names = {"int64": np.int64, "uint8": np.uint8, "bool": np.bool_, "full": np.full}
        found = SimpleNamespace(from_numpy=np.asarray, equal=np.array_equal, **names)
        monkeypatch.setitem(sys.modules, "torch", found)
        return found


@pytest.fixture
def texts(tmp_path: Path) -> tfrecreg.DataSource:
    registry = tfrecreg.init(tmp_path / "texts", with_dvc=False)
    data = [
        {
            "tokens": np.arange(at + 1),
            "scores": np.full((at % 3), 0.5, np.float32),
            "caption": "süß" if at else b"\xff",
            "point": np.array([at, 2.0], np.float32),
        }
        for at in range(6)
    ]
    registry["texts"].build(data={"train": data})
    found = tfrecreg.data_source("texts", "train", registry=registry, with_key=True)
    assert isinstance(found, tfrecreg.DataSource)
    return found


def test_lengths_are_padded_with_a_mask(torch: Any, texts: tfrecreg.DataSource) -> None:
    elements = sorted(texts, key=lambda each: len(each[1]["tokens"]))[1:4]
    batch = pickle.loads(pickle.dumps(Collate(texts, text=["caption"])))(elements)
    assert batch["tokens"].tolist() == [[0, 1, 0, 0], [0, 1, 2, 0], [0, 1, 2, 3]]
    assert batch["tokens/mask"].sum(1).tolist() == [2, 3, 4]
    assert (batch["tokens"].dtype, batch["tokens/mask"].dtype) == (torch.int64, torch.bool)
    assert batch["scores"].tolist() == [[0.5, 0.0], [0.5, 0.5], [0.0, 0.0]]
    assert batch["scores/mask"].tolist() == [[True, False], [True, True], [False, False]]
    assert batch["caption"] == ["süß"] * 3
    assert batch["point"].tolist() == [[1, 2], [2, 2], [3, 2]]
    assert batch["record/key"] == [key for key, _ in elements]
    fixed = Collate(texts, pad_to={"tokens": 9})(elements)
    assert (fixed["tokens"].shape, fixed["tokens/mask"].sum().item()) == ((3, 9), 9)


@pytest.mark.usefixtures("torch")
def test_values_that_do_not_fit_are_refused(texts: tfrecreg.DataSource) -> None:
    with pytest.raises(RefusedError, match="`tokens` has 6 values, and `pad_to` allows 3"):
        Collate(texts, pad_to={"tokens": 3})(list(texts))
    with pytest.raises(RefusedError, match=r"a value of `caption` is not UTF-8: .* at byte 0"):
        Collate(texts, text=["caption"])(list(texts))
    with pytest.raises(UsageError, match="`point` is not a feature of numbers of varying length"):
        Collate(texts, pad_to={"point": 3})
    with pytest.raises(UsageError, match="`tokens` is not a feature of bytes"):
        Collate(texts, text=["tokens"])


def test_images_are_one_tensor_or_padded(torch: Any, source: tfrecreg.DataSource) -> None:
    elements = source.__getitems__([3, 5])
    batch = Collate(source)(elements)
    assert batch["image/encoded"].shape == (2, 28, 28, 1)
    assert "image/encoded/mask" not in batch
    assert batch["record/digest"].dtype == torch.uint8
    elements[0]["image/encoded"] = elements[0]["image/encoded"][:20, :10]
    with pytest.raises(RefusedError, match=r"differ in size: \(20, 10, 1\) and \(28, 28, 1\)"):
        Collate(source)(elements)
    batch = Collate(source, pad_images=True)(elements)
    assert batch["image/encoded"].shape == (2, 28, 28, 1)
    assert batch["image/encoded/mask"].sum((1, 2)).tolist() == [200, 784]
    assert batch["image/encoded"][0, 20:].sum() == 0


@pytest.mark.usefixtures("torch")
def test_images_of_other_channels_are_refused(source: tfrecreg.DataSource) -> None:
    """Padded with zeros, gray would become red."""
    elements = source.__getitems__([3, 5])
    elements[0]["image/encoded"] = np.repeat(elements[0]["image/encoded"], 3, axis=-1)
    for pad in (False, True):
        with pytest.raises(RefusedError, match="have 1 and 3 channels in one batch"):
            Collate(source, pad_images=pad)(elements)


def test_several_images_of_a_record_are_lists(torch: Any, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="the extra `images` is not installed")
    out = io.BytesIO()
    image.fromarray(np.full((2, 3), 7, np.uint8)).save(out, "PNG")
    registry = tfrecreg.init(tmp_path / "r", with_dvc=False)
    data = [{"views": [out.getvalue()] * at} for at in (1, 2)]
    registry["views"].build(data={"train": data})
    found = tfrecreg.data_source("views", registry=registry, decode=["views"])
    batch = Collate(found, pad_images=True)(list(found))
    assert sorted(map(len, batch["views"])) == [1, 2]
    assert torch.equal(batch["views"][0][0], torch.full((2, 3, 1), 7, dtype=torch.uint8))


def test_collation_needs_the_extra(source: tfrecreg.DataSource) -> None:
    try:
        import torch  # noqa: F401 - it is here or not
    except ModuleNotFoundError:
        with pytest.raises(
            MissingExtraError, match="collation for PyTorch needs the extra `torch`"
        ):
            Collate(source)
    else:
        assert Collate(source)

"""`tfrecreg.mixture`: opening members, elements, states, reports, and what is refused."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from check_support import framed
from tests_support import flip

import tfrecreg
from tfrecreg.builtin.training.mixtures.source import Mixture
from tfrecreg.core.example.model import encode
from tfrecreg.core.example.values import bytes_feature, int64_feature
from tfrecreg.core.values.errors import UsageError

from .conftest import Write

RECORDS = [114, 106, 67, 179, 83, 170]
SHARES = {"digits@1.*": 0.7, "digits7": 0.3}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user-cache"))


@pytest.fixture
def made(numbered: Path) -> Callable[..., Mixture]:
    def make(members: Any = None, split: str | None = "train", **more: Any) -> Mixture:
        given = SHARES if members is None else members
        return tfrecreg.mixture(given, split, **{"registry": numbered, "seed": 1, **more})

    return make


def test_members_have_their_shares(made: Callable[..., Mixture]) -> None:
    mixture = made()
    assert repr(mixture) == ("<Mixture of 285 places an epoch: 200 of digits@1.0.0, 85 of digits7>")
    assert (len(mixture), mixture.counts) == (285, {"digits@1.0.0": 200, "digits7": 85})
    places = [mixture.place(at) for at in range(285)]
    assert Counter(each.member for each in places) == mixture.counts
    assert len(set(places)) == 285
    assert Counter(each.member for each in places[:100])["digits7"] in range(28, 33)


def test_the_mixture_never_changes(made: Callable[..., Mixture]) -> None:
    mixture = made()
    assert [mixture.place(at).record for at in (0, 1, 2, 284, 285, 10**9)] == RECORDS


def test_elements_are_those_of_the_members(made: Callable[..., Mixture]) -> None:
    mixture = made(decode=True, with_key=True)
    every = list(mixture)
    assert len(every) == 285
    for at in (0, 7, 284, -1, -285):
        place = mixture.place(at)
        key, element = mixture.members[place.member][place.record]
        for found in (mixture[at], mixture.__getitems__([at])[0], every[at]):
            assert found[0] == key == mixture.key(at)
            assert np.array_equal(found[1]["image/encoded"], element["image/encoded"])
            assert found[1]["image/class/label"] == element["image/class/label"]


def test_rules(made: Callable[..., Mixture], numbered: Path) -> None:
    whole = made(["digits1", "digits7"])
    assert whole.counts == {"digits1": 200, "digits7": 200}
    assert made(stop="all_exhausted").counts == {"digits@1.0.0": 466, "digits7": 200}
    assert made(size=1000).counts == {"digits@1.0.0": 700, "digits7": 300}
    counted = made({"digits1": 300, "digits7": 50}, by="count")
    assert counted.counts == {"digits1": 300, "digits7": 50}
    numbers = made({"digits1": np.int64(30), "digits7": np.int64(5)}, by="count")
    assert json.dumps(numbers.order().state(1)["mixture"]["members"][1]["count"]) == "5"
    with pytest.raises(TypeError):
        made(seed=None)
    test = tfrecreg.data_source("digits1", "test", registry=numbered)
    train = tfrecreg.data_source("digits1", "train[:80%]", registry=numbered)
    opened = tfrecreg.mixture([train, test], temperature=2, size=1000)
    assert opened.counts == {"digits1": 620, "digits1 (2)": 380}
    assert tfrecreg.mixture([(train, 3), (test, 1)]).counts == {"digits1": 160, "digits1 (2)": 53}


def test_batches_are_arrays(made: Callable[..., Mixture]) -> None:
    mixture = made(decode=True, with_digest=True)
    batches = list(mixture.batches(100, mixture.order(epoch=3, host=1, hosts=2)))
    assert [len(each["image/class/label"]) for each in batches] == [100, 42]
    assert batches[0]["image/encoded"].shape == (100, 28, 28, 1)
    assert len(list(mixture.batches(100, drop_remainder=True))) == 2


def test_a_condition_and_options_reach_every_member(made: Callable[..., Mixture]) -> None:
    mixture = made(where="label = '7'", raw=True)
    assert isinstance(mixture[0], bytes)
    assert {each.where for each in mixture.members.values()} == {"label = '7'"}


def test_copies_are_equal(made: Callable[..., Mixture]) -> None:
    mixture = made()
    copy = pickle.loads(pickle.dumps(mixture))
    assert copy.identity == mixture.identity
    assert copy[17]["image/encoded"] == mixture[17]["image/encoded"]


def test_a_report_says_what_of_each_member_came_how_often(made: Callable[..., Mixture]) -> None:
    mixture = made(size=1000, with_digest=True)
    certificates = [mixture.certificate() for _ in range(3)]
    for host, certificate in enumerate(certificates):
        for batch in mixture.batches(64, mixture.order(host=host, hosts=3)):
            certificate.add(batch["record/digest"])
    whole = tfrecreg.Certificate.from_bytes(certificates[0].to_bytes())
    for each in certificates[1:]:
        whole.merge(each)
    report = mixture.report(whole)
    assert report.is_complete
    assert str(report) == (
        "all 1,000 elements as planned\n"
        "700 of digits@1.0.0, 200 records: 3 times 100, 4 times 100\n"
        "300 of digits7, 200 records: once 100, twice 100"
    )
    assert report.members[1].times == {1: 100, 2: 100}
    part = mixture.report(certificates[0])
    assert not part.is_complete
    assert (part.expected, part.handed_out, part.foreign) == (1000, len(certificates[0]), 0)
    missed = sum(each.missed for each in part.members)
    assert str(part).startswith(f"334 handed out of 1,000: {missed} missed, 0 too many, 0 foreign")
    assert "\nmissed: record 0 of `" in str(part)


def test_what_is_too_much_or_foreign_is_told(made: Callable[..., Mixture], numbered: Path) -> None:
    mixture = made({"digits1": 1, "digits7": 1}, raw=True)
    certificate = mixture.certificate()
    certificate.add_payloads(mixture)
    certificate.add_payloads(mixture[at] for at in (0, 0, 5))
    certificate.add_payloads([encode({"x": int64_feature(1)})])
    report = mixture.report(certificate)
    assert (report.foreign, report.handed_out, report.expected) == (1, 404, 400)
    # Both members have the same records, and the first one is named.
    assert [each.surplus for each in report.members] == [3, 0]
    assert len(report.members[0].surplus_records) == 2
    assert "too many: record " in str(report)
    other = made({"digits1": 1, "digits7": 2}, raw=True)
    with pytest.raises(UsageError, match="the certificate is about another mixture"):
        other.report(certificate)


def test_of_equal_records_as_many_are_named_as_were_missed(write: Write) -> None:
    payloads = [encode({"x": int64_feature(each)}) for each in (1, 1, 2)]
    mixture = tfrecreg.mixture([write("x.tfrecord", payloads)], raw=True)
    certificate = mixture.certificate()
    certificate.add_payloads([payloads[0], *payloads[2:] * 2])
    (member,) = mixture.report(certificate).members
    assert (member.missed, [each.record for each in member.missed_records]) == (1, [0])
    assert (member.surplus, [each.record for each in member.surplus_records]) == (1, [2])


def test_a_state_is_a_small_json_object(made: Callable[..., Mixture]) -> None:
    mixture = made()
    state = mixture.order(epoch=2, host=1, hosts=2).state(40)
    members = list(mixture.members.values())
    assert json.loads(json.dumps(state)) == {
        "format": 1,
        "source": mixture.identity,
        "records": 285,
        "seed": None,
        "epoch": 2,
        "drop_remainder": False,
        "before": [],
        "host": 1,
        "hosts": 2,
        "done": 40,
        "mixture": {
            "seed": 1,
            "members": [
                {
                    "name": "digits@1.0.0",
                    "source": members[0].identity,
                    "records": 200,
                    "count": 200,
                },
                {"name": "digits7", "source": members[1].identity, "records": 200, "count": 85},
            ],
        },
    }
    rest = mixture.from_state(state, host=2, hosts=3)
    assert repr(rest) == "<Order of 68 of 285 records, seed None, epoch 2, host 2 of 3>"
    assert rest.state(1)["before"] == [[80]]
    assert rest[0] == 2 * 285 + 82
    copy = pickle.loads(pickle.dumps(rest))
    assert (list(copy), copy.state(3)) == (list(rest), rest.state(3))


@pytest.mark.parametrize(
    ("other", "differs"),
    [
        ({"members": ["digits1"]}, "members"),
        ({"members": {"digits@1.0.0": 1, "digits1": 1}}, "members"),
        ({"size": 1000}, "members"),
        ({"seed": 2}, "seed"),
        ({"split": "test"}, "members"),
    ],
)
def test_states_of_other_mixtures_are_refused(
    made: Callable[..., Mixture], other: dict[str, Any], differs: str
) -> None:
    state = made().order().state(3)
    with pytest.raises(UsageError, match=f"another order: its `{differs}` is"):
        made(**other).from_state(state)


@pytest.mark.parametrize(
    "more",
    [
        {"by": "size"},
        {"stop": "never"},
        {"temperature": 2},
        {"by": "count"},
        {"by": "count", "size": 3},
        {"size": 0},
        {"members": {}},
        {"members": "digits1"},
        {"members": [("digits1", 1), "digits7"]},
        {"members": {"digits1": -1}},
        {"split": "train[:0]"},
        {"features": ["x"]},
        {"features": ["x"], "raw": True},
    ],
)
def test_arguments_that_make_no_sense(made: Callable[..., Mixture], more: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        made(**more)


def test_an_open_source_keeps_its_form(numbered: Path) -> None:
    source = tfrecreg.data_source("digits1", "train", registry=numbered)
    with pytest.raises(UsageError, match="already open, so `split` and `decode`"):
        tfrecreg.mixture([source], "train", decode=True)
    raw = tfrecreg.data_source("digits7", "train", registry=numbered, raw=True)
    with pytest.raises(UsageError, match="in `raw`: True in `digits7`, False in `digits1`"):
        tfrecreg.mixture([raw, source])


# --- members that differ


@pytest.fixture
def animals(tmp_path: Path) -> tfrecreg.Registry:
    """Datasets whose elements have other features, and whose classes have other names."""
    registry = tfrecreg.init(tmp_path / "animals", with_dvc=False)
    for name, classes, more in (
        ("pets", ["cat", "dog"], {}),
        ("farm", ["cow", "dog"], {"weight": 1.5}),
        ("wild", ["cat", "dog", "elk"], {"weight": 2.5}),
    ):
        data = [{"label": at % 2, "legs": 4, **more} for at in range(10)]
        registry[name].build(data={"train": data}, labels={"label": classes})
    return registry


def test_elements_of_members_have_the_same_features(animals: tfrecreg.Registry) -> None:
    with pytest.raises(UsageError) as caught:
        tfrecreg.mixture(["pets", "wild"], registry=animals)
    assert caught.value.message == (
        "elements of the members differ in `weight`: missing in `pets`, float of shape () in "
        "`wild`; `features=[…]` can select features that agree"
    )
    common = tfrecreg.mixture(["pets", "wild"], features=["label", "legs"], registry=animals)
    assert sorted(common[0]) == ["label", "legs"]


def test_one_class_has_one_name(animals: tfrecreg.Registry) -> None:
    both = {"registry": animals, "features": ["label", "legs"]}
    with pytest.raises(UsageError) as caught:
        tfrecreg.mixture(["pets", "farm"], **both)
    told = "class 0 of `label` is `cat` in `pets` and `cow` in `farm`"
    assert caught.value.message.startswith(told)
    legs = tfrecreg.mixture(["pets", "farm"], registry=animals, features=["legs"])
    assert legs[0] == {"legs": 4}


def test_files_of_any_tool_are_members(tmp_path: Path) -> None:
    for name, count in (("a", 20), ("b", 5)):
        data = [encode({"x": int64_feature(at), "y": bytes_feature([b"z"])}) for at in range(count)]
        (tmp_path / f"{name}.tfrecord").write_bytes(framed(*data))
    mixture = tfrecreg.mixture([tmp_path / "a.tfrecord", tmp_path / "b.tfrecord"])
    assert sorted(int(each["x"][0]) for each in mixture) == sorted([*range(20), *range(5)])
    with pytest.raises(UsageError, match="no schema says which features of"):
        mixture.batches(3)


def test_damaged_records_are_left_out_by_member(digits_registry: Path) -> None:
    path = digits_registry / "data/digits/digits-train.tfrecord-00000-of-00002"
    flip(path, int(tfrecreg.Records(path).offsets[12]) + 20)
    options: dict[str, Any] = {"registry": digits_registry, "with_digest": True}
    both = ["train", "test"]
    with pytest.raises(tfrecreg.TfrecregError, match=r"record 12 of .* is damaged"):
        list(tfrecreg.mixture(tfrecreg.data_source("digits", both, **options)))
    options.update(damaged="skip", max_damaged=1)
    mixture = tfrecreg.mixture(tfrecreg.data_source("digits", both, **options))
    certificate = mixture.certificate()
    for batch in mixture.batches(50):
        certificate.add(batch["record/digest"])
    assert [each.record for each in mixture.skipped] == [12]
    report = mixture.report(certificate)
    assert (report.handed_out, [each.missed for each in report.members]) == (259, [1, 0])

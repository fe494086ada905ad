"""Options that are refused, and label maps and schemas that disagree."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from derived_support import NIGHT, STREET, Derived, pictures

from tfrecreg.builtin.derived.parents import choose_features, renamed_labels
from tfrecreg.builtin.derived.schemas import merge_classes
from tfrecreg.cli.main import main
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.values.errors import UsageError

LABEL = "image/class/label"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Derived:
    found = Derived(tmp_path_factory.mktemp("options") / "registry")
    found.parent("street", pictures("s", STREET, 6, 2), labels={LABEL: STREET})
    found.parent("bare", pictures("b", STREET, 6, 2))
    found.parent("night", pictures("n", NIGHT, 6, 2), labels={LABEL: NIGHT})
    return found


@pytest.mark.parametrize(
    ("entries", "chosen"),
    [
        ((), {"a": "a", "b/x": "b/x", "b/y": "b/y"}),
        (("a=",), {"b/x": "b/x", "b/y": "b/y"}),
        (("b/*",), {"b/x": "b/x", "b/y": "b/y"}),
        (("b/*=", "b/x"), {"b/x": "b/x"}),
        (("b/*", "b/x=x"), {"b/x": "x", "b/y": "b/y"}),
        (("a=b/x", "b/x=a"), {"a": "b/x", "b/x": "a", "b/y": "b/y"}),
    ],
)
def test_features_are_chosen_by_names_and_patterns(
    entries: tuple[str, ...], chosen: dict[str, str]
) -> None:
    assert choose_features(entries, ["b/y", "a", "b/x"]) == chosen


CATS: dict[str, Any] = {"o/label": ["cat", "dog"], "o/id": ["7", "8"], "o/keypoint": ["nose"]}


@pytest.mark.parametrize(
    ("others", "classes", "lost"),
    [
        ({}, (), set()),
        ({}, ("dog=pet",), {"o/id"}),
        ({"o/id": ["7", "9"]}, (), {"o/id"}),
        ({"o/label": ["dog", "cat"]}, (), {"o/id"}),
        ({"o/keypoint": ["tail"]}, (), None),
    ],
)
def test_label_maps_of_other_features_are_kept_if_they_fit(
    others: Any, classes: Any, lost: set[str] | None
) -> None:
    both: Any = [
        SimpleNamespace(name=name, labels=labels, features={"o/label"})
        for name, labels in (("one", CATS), ("two", {**CATS, **others}))
    ]
    if lost is None:
        with pytest.raises(UsageError, match="`one` and `two` have different label maps for `o/k"):
            merge_classes(both, classes)
        return
    merged = merge_classes(both, classes).labels
    assert CATS.keys() - merged.keys() == lost
    assert renamed_labels(CATS, {"o/label": "o/label", "o/keypoint/x": "o/keypoint/x"}) == CATS
    assert renamed_labels(CATS, {"o/label": "new", "o/keypoint/x": "x"}) == {"new": CATS["o/label"]}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("inputs=street@9.*",), "no release `street@9.*`"),
        (("inputs=strete@1.0.0",), "no dataset `strete`; did you mean `street`?"),
        (("inputs=street,street@1.0.0",), "`inputs` names `street` twice, as `street` and"),
        (("inputs=street", "classes=dgo="), "`classes` names `dgo`, which no parent has"),
        (("inputs=street,bare",), "has class names in the parent `street`, but none in `bare`"),
        (("inputs=street", "sample=0.0001%"), "no record of the parents is selected: `street`"),
        (("inputs=street", "where=colour = 1"), "colour"),
        ((), "the option `inputs` of `tfrecreg` is missing"),
    ],
)
def test_a_build_is_refused_in_one_line(
    made: Derived, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], message: str
) -> None:
    if any(each.startswith("where") for each in options):
        pytest.importorskip("duckdb", reason="the extra `query` is not installed")
    given = [word for each in options for word in ("--option", each)]
    call = ["-C", str(made.folder), "build", "child", "--source", "tfrecreg", *given]
    assert main(call) == 2
    shown = " ".join(capsys.readouterr().err.split())
    assert message in shown
    assert not (made.folder / "data/child").exists()


def test_the_file_of_the_dataset_builds_it_again(made: Derived) -> None:
    (made.folder / "datasets").mkdir(exist_ok=True)
    (made.folder / "datasets/again.toml").write_text(
        'source = "tfrecreg"\n[options]\ninputs = ["street@1.*"]\nclasses = ["truck=lorry"]\n'
        'features = ["width="]\nsample = "100%"\nlimit = 100\n'
    )
    assert main(["-C", str(made.folder), "build", "again"]) == 0
    rows = made.rows("again")
    assert len(rows) == 8
    assert {row["image/class/text"][0] for row in rows.values()} == {b"cat", b"dog", b"lorry"}


def test_schemas_that_differ_are_widened_or_refused(tmp_path: Path) -> None:
    made = Derived(tmp_path / "registry")
    one = [{"name": f"a{at}", "size": at, "only": 1.5} for at in range(3)]
    two = [{"name": f"b{at}", "size": 10 * at} for at in range(3)]
    made.parent("one", {"train": one})
    made.parent("two", {"train": two})
    made.registry["three"].build(
        data={"train": [{"name": "c", "size": b"large"}]}, key="name", progress=False
    )
    build = made.build("both", "one", "two")
    features = {each.name: each for each in parse_schema(build.schema).features}
    assert not features["only"].is_required
    assert features["size"].is_required
    assert made.registry.find("both").check(progress=False).status == "pass"
    with pytest.raises(UsageError) as caught:
        made.build("other", "one", "three")
    assert caught.value.message == (
        "the schemas of the parents `one` and `three` declare `size` differently: "
        "`--option features=size=` leaves it out"
    )
    build = made.build("other", "one", "three", features=["size="])
    assert {"name", "only"} == set(build.manifest.features)


def test_domains_are_widened_and_fit_the_new_classes(tmp_path: Path) -> None:
    made = Derived(tmp_path / "registry")
    (made.folder / "schemas").mkdir(exist_ok=True)
    for name, names in (("street", STREET), ("night", NIGHT)):
        values = " ".join(f'value: "{each}"' for each in names)
        keys = " ".join(f'value: "street{at:03}"' for at in (*range(6), 500, 501))
        keys = f"string_domain {{ {keys} }}" if name == "street" else ""
        (made.folder / f"schemas/{name}.pbtxt").write_text(
            'feature { name: "image/class/label" type: INT int_domain { min: 0 max: 2 } }\n'
            f'feature {{ name: "image/class/text" type: BYTES string_domain {{ {values} }} }}\n'
            f'feature {{ name: "name" type: BYTES {keys} }}\n'
            'feature { name: "raw/data" type: BYTES }\n'
            f'feature {{ name: "width" type: INT int_domain {{ min: {len(name)} max: 900 }} }}\n'
            'sparse_feature { name: "s" index_feature { name: "width" } '
            'value_feature { name: "name" } }\n'
            'weighted_feature { name: "w" feature { step: "name" } '
            'weight_feature { step: "width" } }\n'
        )
        made.registry[name].build(
            data=pictures(name, names, 6, 2), key="name", labels={LABEL: names}, progress=False
        )
    build = made.build("both", "street", "night", classes=["kitten=cat", "fox=wolf"])
    features = {each.name: each for each in parse_schema(build.schema).features}
    assert build.manifest.labels[LABEL] == ["cat", "dog", "truck", "wolf"]
    assert features[LABEL].domain.max == 3
    assert set(features["image/class/text"].domain.values) == {"cat", "dog", "truck", "wolf"}
    assert (features["width"].domain.min, features["width"].domain.max) == (5, 900)
    assert features["name"].domain is None
    assert [build.schema.count(f"{each}_feature {{") for each in ("sparse", "weighted")] == [1, 1]
    assert made.registry.find("both").check(progress=False).status == "pass"


def test_a_shape_that_one_parent_lacks_is_none(tmp_path: Path) -> None:
    made = Derived(tmp_path / "registry")
    made.parent("one", {"train": [{"name": "a", "size": 1}, {"name": "b", "size": 2}]})
    made.parent("many", {"train": [{"name": "c", "size": [1, 2]}, {"name": "d", "size": [3]}]})
    build = made.build("both", "one", "many")
    features = {each.name: each for each in parse_schema(build.schema).features}
    assert features["size"].shape is None
    assert features["name"].shape == ()
    assert made.registry.find("both").check(progress=False).status == "pass"

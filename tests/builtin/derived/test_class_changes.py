"""Label maps and class numbers of records, renamed and changed without a build."""

from __future__ import annotations

from tfrecreg.builtin.derived.derived_options import renamed_labels
from tfrecreg.builtin.derived.schemas import ClassChange, change_classes
from tfrecreg.core.example.features import bytes_feature, int64_feature


def change(feature: str, *, same: bool = False, **more: object) -> ClassChange:
    given = {"text": None, "objects": "", "numbers": {0: 1, 1: 0}, "texts": {}, **more}
    return ClassChange(feature=feature, same=same, **given)  # type: ignore[arg-type]


def test_label_maps_go_with_their_features() -> None:
    labels = {
        "label": ["cat", "dog"],
        "category/id": ["car"],
        "object/keypoint": ["nose"],
        "other": ["left out"],
    }
    chosen = {
        "label": "animal",
        "category/label": "category/label",
        "object/keypoint/x": "object/keypoint/x",
    }
    assert renamed_labels(labels, chosen) == {
        "animal": ["cat", "dog"],
        "category/id": ["car"],
        "object/keypoint": ["nose"],
    }


def test_a_label_map_beside_a_renamed_feature_is_left_out() -> None:
    labels = {"category/id": ["car"], "object/keypoint": ["nose"]}
    chosen = {"category/label": "kind", "object/keypoint/x": "x"}
    assert renamed_labels(labels, chosen) == {}


def test_a_feature_that_stays_or_is_missing_hides_no_other() -> None:
    record = {
        "first": int64_feature([0]),
        "last": int64_feature([0, 1]),
        "text": bytes_feature(b""),
    }
    changes = [change("first", same=True), change("none"), change("text"), change("last")]
    made, left_out = change_classes(record, changes)
    assert left_out == 0
    assert list(made["first"].values) == [0]
    assert list(made["last"].values) == [1, 0]

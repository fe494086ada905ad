"""Classes of objects are renamed, merged and left out, in all lists of the objects."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cases_support import count_cases
from derived_support import STREET, Derived, scenes

LABEL, TEXT = "image/object/class/label", "image/object/class/text"
POLYGON = "image/object/polygon"


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Derived:
    made = Derived(tmp_path_factory.mktemp("drawn") / "registry")
    made.parent("scenes", scenes(), labels={LABEL: STREET})
    return made


def test_objects_of_a_class_are_removed_from_all_lists(drawn: Derived) -> None:
    build = drawn.build("pets", "scenes@1.0.0", classes=["dog="])
    assert build.manifest.labels[LABEL] == ["cat", "truck"]
    before, after = drawn.rows("scenes"), drawn.rows("pets")
    assert before.keys() == after.keys()
    removed = 0
    for key, old in before.items():
        new = after[key]
        kept = [place for place, number in enumerate(old[LABEL]) if STREET[number] != "dog"]
        removed += len(old[LABEL]) - len(kept)
        assert [["cat", "truck"][each] for each in new[LABEL]] == [
            STREET[old[LABEL][place]] for place in kept
        ]
        assert new[TEXT] == tuple(old[TEXT][place] for place in kept)
        for side in ("xmin", "ymin", "xmax", "ymax"):
            box = f"image/object/bbox/{side}"
            assert new[box] == tuple(old[box][place] for place in kept)
        points = "image/object/keypoint/x"
        assert new[points] == tuple(old[points][2 * at + each] for at in kept for each in (0, 1))
        assert _polygons(new) == [_polygons(old)[place] for place in kept]
    assert removed > 0
    assert build.manifest.ledger["train"].remarks == {"SRC015": removed}
    lines = map(json.loads, drawn.files("pets")["ledger.jsonl"].splitlines())
    assert count_cases(lines) == {"SRC015": removed}
    assert drawn.registry.find("pets").check(progress=False).status == "pass"


def test_records_without_the_class_have_the_bytes_of_the_parent(drawn: Derived) -> None:
    drawn.build("last", "scenes@1.0.0", classes=["truck="])  # the last one: no number changes
    before, after = drawn.rows("scenes"), drawn.rows("last")
    same = {key for key, row in before.items() if b"truck" not in row[TEXT]}
    assert same
    assert {key for key in before if before[key][""] == after[key][""]} == same


def test_objects_are_merged_by_names(drawn: Derived) -> None:
    build = drawn.build("merged", "scenes@1.0.0", classes=["cat=animal", "dog=animal"])
    assert build.manifest.labels[LABEL] == ["animal", "truck"]
    before, after = drawn.rows("scenes"), drawn.rows("merged")
    for key, old in before.items():
        names = tuple(b"truck" if name == b"truck" else b"animal" for name in old[TEXT])
        assert after[key][TEXT] == names
        assert after[key][LABEL] == tuple(int(name == b"truck") for name in names)


def test_a_limit_takes_an_image_while_one_of_its_classes_has_fewer(drawn: Derived) -> None:
    drawn.build("few", "scenes@1.0.0", limit=1)
    rows = drawn.rows("few")
    found = {name for row in rows.values() for name in row[TEXT]}
    assert found == {name.encode() for name in STREET}
    assert any(not row[TEXT] for row in rows.values())
    assert len(rows) <= len(STREET) + 1


def test_lists_of_other_lengths_are_skipped(tmp_path: Path) -> None:
    from tfrecreg.core.values.errors import RefusedError

    made = Derived(tmp_path / "registry")
    rows = scenes()
    rows["train"][3]["image/object/weight"] = [0.5, 0.5]  # of three objects
    made.registry["odd"].build(data=rows, key="name", labels={LABEL: STREET}, progress=False)
    with pytest.raises(RefusedError, match=r"SRC113: 1\).* values for [0-9]+ objects"):
        made.build("pets", "odd", classes=["dog="])
    build = made.build("pets", "odd", classes=["dog="], settings={"max_skipped": 1})
    assert build.manifest.ledger["train"].skipped == {"SRC113": 1}
    assert ("train", "scene003") not in made.rows("pets")


def test_numbers_without_a_name_are_skipped_and_negative_ones_stay(tmp_path: Path) -> None:
    made = Derived(tmp_path / "registry")
    rows = [{"name": f"n{at}", "image/class/label": at - 1} for at in range(5)]
    made.registry["odd"].build(
        data={"train": rows},
        key="name",
        labels={"image/class/label": ["a", "b", "c"]},
        progress=False,
    )
    build = made.build("less", "odd", classes=["a="], settings={"max_skipped": 1})
    assert build.manifest.ledger["train"].skipped == {"SRC113": 1}
    lines = map(json.loads, made.files("less")["ledger.jsonl"].splitlines())
    assert count_cases(lines) == {"SRC015": 1, "SRC113": 1}
    found = {key: row["image/class/label"] for (_, key), row in made.rows("less").items()}
    assert found == {"n0": (-1,), "n2": (0,), "n3": (1,)}


def _polygons(row: dict[str, tuple[float, ...]]) -> list[list[tuple[float, ...]]]:
    """Of each object the x coordinates of each of its polygons, y beside x."""
    objects, point, part = [], 0, 0
    for parts in row[f"{POLYGON}/parts"]:
        polygons = []
        for count in row[f"{POLYGON}/points"][part : part + parts]:
            for axis in "xy":
                polygons.append(row[f"{POLYGON}/{axis}"][point : point + count])
            point += count
        part += parts
        objects.append(polygons)
    assert point == len(row[f"{POLYGON}/x"]) == len(row[f"{POLYGON}/y"])
    return objects

"""Data that a build refuses: a clear error, and nothing is left behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from python_data_support import Elements, element, made, refused, stage
from python_data_support import registry as registry  # the fixture
from tests_support import tree

from tfrecreg.builtin.python_data.build import build
from tfrecreg.core.build.request import BuildRequest
from tfrecreg.core.registry.registry import Registry, open_registry
from tfrecreg.core.values.errors import RawDataError, RefusedError, UsageError


def halting() -> Iterator[dict[str, Any]]:
    yield {"x": 1}
    raise OSError("the disk is gone")


class Halting(Elements):
    def __getitem__(self, number: int) -> dict[str, Any]:
        if number == 3:
            raise KeyError("no third")
        return element(number)


class OnlyInTurn(Elements):
    """As PyTorch's iterable datasets are, which also have the methods of a sequence."""

    def __getitem__(self, number: int) -> dict[str, Any]:
        raise NotImplementedError

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter([element(0)])


BAD: list[tuple[Any, dict[str, Any], str]] = [
    ({}, {}, "`data` should be a dictionary from the names of splits to their elements"),
    ([1], {}, "`data` should be a dictionary from the names of splits to their elements"),
    ({1: []}, {}, "`data` should be a dictionary from the names of splits to their elements"),
    ({"a b": [{"x": 1}]}, {}, "`a b` is not a split name: expected letters, digits and `_`"),
    ({"train": []}, {}, "split `train` has no elements"),
    ({"train": iter(())}, {}, "split `train` has no elements"),
    ({"train": "raw/train"}, {}, "split `train`, element 0 is an object of type `str`"),
    ({"train": 5}, {}, "split `train` cannot be read: TypeError: 'int' object is"),
    ({"train": {}}, {}, "split `train` is an empty dictionary"),
    (
        {"train": {"x": [1, 2], "y": [1]}},
        {},
        "split `train`: the column `x` has 2 values, `y` has 1",
    ),
    ({"train": {"x": 5}}, {}, "split `train`: the column `x` is an object of type `int`,"),
    ({"train": np.zeros((2, 3))}, {}, "split `train`, element 0 is an object of type `ndarray`,"),
    ({"train": halting()}, {}, "split `train`: the iterable failed at element 1: OSError: the"),
    ({"train": Halting()}, {}, "split `train`, element 3 cannot be read: KeyError: 'no third'"),
    ({"train": OnlyInTurn()}, {}, "split `train`, element 0 cannot be read: NotImplementedError"),
    (
        {"train": [{"x": 1}, {"x": np.uint64(2**64 - 1)}]},
        {},
        "split `train`, element 1, key `00001`: feature `x`: 18446744073709551615 is outside",
    ),
    (
        {"train": [{"id": "a", "x": np.array([0.1])}]},
        {"key": "id"},
        "split `train`, element 0, key `a`: feature `x`: float32 does not hold",
    ),
    (
        {"train": [{"x": np.array([object()])}]},
        {},
        "split `train`, element 0, key `00000`: feature `x`: an array of `object` cannot be",
    ),
    (
        {"train": [{"x": [[1, 2], [3]]}]},
        {},
        "split `train`, element 0, key `00000`: feature `x`: a list",
    ),
    (
        {"train": [{"x": 1}]},
        {"key": "id"},
        "split `train`, element 0 has no feature `id`, which `key`",
    ),
    (
        {"train": [{"id": 1.5}]},
        {"key": "id"},
        "split `train`, element 0: the feature `id` cannot be a key",
    ),
    (
        {"train": [{"x": 1}]},
        {"key": lambda each: each["y"]},
        "split `train`, element 0: the result of the function `key` cannot be a key:",
    ),
    (
        {"train": [{"x": 1}]},
        {"key": 5},
        "split `train`, element 0: the result of the function `key` cannot be a key: TypeError",
    ),
    (
        {"train": [{"id": 1}, {"id": 2}, {"id": 1}]},
        {"key": "id"},
        "split `train`: the elements 0 and 2 have the same key `1`",
    ),
    (
        {"train": [{"x": 1}]},
        {"labels": {"y": ["a"]}},
        "`labels` names the feature `y`, which no element has",
    ),
    ({"train": [{"x": 1}]}, {"labels": {"x": "ab"}}, "`labels` has no list of names for `x`"),
    (None, {"key": "x"}, "`key` needs `data`"),
]


@pytest.mark.parametrize(("data", "given", "message"), BAD)
def test_what_cannot_be_built_is_named_and_leaves_nothing(
    registry: Registry, data: Any, given: dict[str, Any], message: str
) -> None:
    before = tree(Path(registry.storage.root), ignore=(".tfrecreg",))
    error = refused(registry, data, **given)
    assert isinstance(error, UsageError)
    assert error.exit_code == 2
    assert error.message.startswith(message)
    assert error.message.isprintable()
    assert not stage(registry).exists()
    assert tree(Path(registry.storage.root), ignore=(".tfrecreg",)) == before


def test_a_pandas_series_is_refused_as_it_has_labels(registry: Registry) -> None:
    pandas = pytest.importorskip("pandas")
    series = pandas.Series([{"x": 1}, {"x": 2}], index=[1, 0])
    error = refused(registry, {"train": series})
    assert error.message == "split `train` is a pandas object: its elements have labels"


def test_data_and_a_source_exclude_each_other(registry: Registry) -> None:
    request = BuildRequest(
        name="shapes", source="mnist", raw="raw", max_skipped=1, save_options=True
    )
    with pytest.raises(UsageError) as caught:
        build(registry, request, data={"train": Elements()})
    assert caught.value.message == (
        "`source` and `raw` and `max_skipped` and `save_options` cannot be combined with `data`: "
        "a build from `data` has no source and reads no raw files"
    )
    folder = Path(registry.storage.root, "datasets")
    folder.mkdir(exist_ok=True)
    (folder / "shapes.toml").write_text('source = "mnist"\nraw = "raw"\n')
    error = refused(open_registry(registry.storage.root), {"train": Elements()})
    assert "names the source `mnist` for `shapes`, so `data` cannot be built" in error.message


def test_elements_that_differ_when_they_are_read_again_are_refused(registry: Registry) -> None:
    class Augmented(Elements):
        def __getitem__(self, number: int) -> dict[str, Any]:
            self.reads += 1
            return {"x": self.reads}

    made(registry, {"train": [{"x": 1}]})
    before = tree(Path(registry.storage.root, "data"))
    error = refused(registry, {"train": Augmented()})
    assert isinstance(error, RawDataError)
    assert error.message.endswith("changed between two reads")
    assert error.message.startswith("split `train`, element ")
    assert "leave out random augmentation, or pass `iter(data)`" in error.hint
    assert tree(Path(registry.storage.root, "data")) == before
    augmented = made(registry, {"train": (Augmented()[0] for _ in range(3))})
    assert augmented.manifest.splits[0].records == 3


def test_data_that_break_the_accepted_schema_are_refused(registry: Registry) -> None:
    made(registry, {"train": [element(0), element(1)]}, key="id")
    before = tree(Path(registry.storage.root, "data"))
    ragged = {**element(2), "label": [1, 2]}
    error = refused(registry, {"train": [element(0), ragged]}, key="id")
    assert isinstance(error, RefusedError)
    assert error.exit_code == 1
    assert error.message == (
        "the new build does not pass its own check, so the old one stays: `label` should have "
        "exactly 1 value (split `train`, key `a-2`)"
    )
    assert [each.code for each in error.findings] == ["SCH004", "SCH006"]
    assert tree(Path(registry.storage.root, "data")) == before


def test_a_lost_schema_is_not_drafted_anew_unasked(registry: Registry) -> None:
    made(registry, {"train": Elements(5)})
    Path(registry.storage.root, "schemas/shapes.pbtxt").unlink()
    error = refused(registry, {"train": Elements(6)})
    message = "`schemas/shapes.pbtxt` is missing, and the draft from the data differs from the"
    assert message in error.message
    assert error.hint == "use the draft: `build(…, default_schema=True)`"
    assert made(registry, {"train": Elements(6)}, default_schema=True).report.status == "pass"


DOUBLES = np.array([0.5, 0.1])


@pytest.mark.parametrize(
    "data",
    [
        {"x": DOUBLES},
        {"x": list(DOUBLES)},
        [{"x": each} for each in DOUBLES],
        ({"x": each} for each in DOUBLES),
        ({"x": [each]} for each in DOUBLES),
        ({"x": np.array(each)} for each in DOUBLES),
    ],
    ids=["column", "list", "sequence", "generator", "lists", "arrays"],
)
def test_a_float64_is_never_rounded_in_any_form_of_a_split(registry: Registry, data: Any) -> None:
    error = refused(registry, {"train": data})
    assert error.message.startswith(
        "split `train`, element 1, key `00001`: feature `x`: float32 does not hold 0.1 "
    )
    assert error.exit_code == 2

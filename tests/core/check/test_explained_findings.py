"""One mistake is one finding."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest
from scan_support import write_examples

from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.reports import Report
from tfrecreg.core.check.run import check
from tfrecreg.core.example.model import Example
from tfrecreg.core.example.values import float_feature, int64_feature

SCHEMA = (
    "".join(
        f'feature {{ name: "image/object/bbox/{side}" type: FLOAT '
        "float_domain { min: 0 max: 1 disallow_nan: true } }\n"
        for side in ("xmin", "xmax", "ymin", "ymax")
    )
    + 'feature { name: "image/object/class/label" type: INT int_domain { max: 9 } }\n'
)


def example(xmin: float = 0.1, ymax: float = 0.9, label: int = 1) -> Example:
    sides = {"xmin": xmin, "xmax": 0.5, "ymin": 0.2, "ymax": ymax}
    boxes = {f"image/object/bbox/{side}": float_feature(each) for side, each in sides.items()}
    return {**boxes, "image/object/class/label": int64_feature(label)}


def codes(folder: Path, rows: list[Example], *only: str) -> dict[str, int]:
    (folder / "s.pbtxt").write_text(SCHEMA)
    path = write_examples(folder / "x-train.tfrecord-00000-of-00001", rows)
    options = CheckOptions(only=only, schema=str(folder / "s.pbtxt"))
    report: Report
    (report,) = check([str(path)], options=options)
    return {
        f"{each.code} {each.fingerprint.split(':')[3][-4:]}": each.count for each in report.findings
    }


@pytest.mark.parametrize("wrong", [-3.0, float("nan")])
def test_a_wrong_side_of_a_box_is_told_once(tmp_path: Path, wrong: float) -> None:
    rows = [example(), example(xmin=wrong)]
    assert codes(tmp_path, rows, "annotations", "schema") == {"ANN002 xmin": 1}
    (alone,) = codes(tmp_path, rows, "schema")
    assert alone.startswith("SCH00")


def test_what_boxes_do_not_explain_stays(tmp_path: Path) -> None:
    rows = [example(xmin=-1.0), example(label=12)]
    assert codes(tmp_path, rows, "annotations", "schema") == {"ANN002 xmin": 1, "SCH006 abel": 1}


def test_an_explanation_that_fails_makes_the_check_incomplete(
    tmp_path: Path, install_plugin: Callable[..., None]
) -> None:
    more = """
        class Clever(Even):
            def explains(self, own, others):
                return [each for each in others if each.code == "SCH006"] if BOLD else 1 / 0

        def load(): return Clever
    """
    install_plugin(more=f"BOLD = True\n{dedent(more)}")
    rows = [example(label=12)]
    assert codes(tmp_path, rows, "schema") == {"SCH006 abel": 1}
    assert codes(tmp_path, rows, "even", "schema") == {"EVE001 ": 1}
    install_plugin("other", more=f"BOLD = False\n{dedent(more)}")
    options = CheckOptions(only=("other:even", "schema"), schema=str(tmp_path / "s.pbtxt"))
    (report,) = check([str(tmp_path / "x-train.tfrecord-00000-of-00001")], options=options)
    assert {each.code for each in report.findings} == {"EVE001", "SCH006"}
    (problem,) = report.errors
    assert problem.startswith("the validator `even` of `other` 1.5 failed in `explains`")
    assert report.status == "error"

"""JSON Lines, as any program reads them: by `json` alone."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tfrecreg.builtin.export.records import JsonLines
from tfrecreg.core.example.model import Example, encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature
from tfrecreg.core.plugins.convert import ShardConversion

from .conftest import GIF, MakeTask

LABELS = {"label": ["cat", "dog"], "text": ["never"]}
Write = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def write(make_task: MakeTask, tmp_path: Path) -> Write:
    """``write(examples, keys)``: the lines of the file."""

    def call(
        examples: Sequence[Example], keys: Sequence[str] | None = None
    ) -> list[dict[str, Any]]:
        ShardConversion(JsonLines(LABELS))(make_task([encode(each) for each in examples], keys))
        return [json.loads(line) for line in (tmp_path / "stage/out").read_bytes().splitlines()]

    return call


def test_a_record_is_a_line_with_its_features_by_name(write: Write) -> None:
    example: Example = {
        "image": bytes_feature(GIF + b"\xff"),
        "text": bytes_feature(["line\nbreak", "ü"]),
        "label": int64_feature(1),
        "score": float_feature(0.5),
    }
    assert write([example, {}], ["a", "b"]) == [
        {
            "key": "a",
            "features": {
                "image": {"base64": b64encode(GIF + b"\xff").decode()},
                "text": ["line\nbreak", "ü"],
                "label": 1,
                "score": 0.5,
            },
            "classes": {"label": ["dog"]},
        },
        {"key": "b", "features": {}, "classes": {}},
    ]


def test_a_number_without_a_class_name_has_none(write: Write) -> None:
    (line,) = write([{"label": int64_feature([0, 2, -1])}])
    assert line["classes"] == {"label": ["cat", None, None]}
    assert line["key"] is None


@pytest.mark.parametrize("damage", [b"", b"{}", b'{"features": {"x": {"base64": "?"}}}', b"\xff"])
def test_a_line_that_is_no_record_is_named(
    make_task: MakeTask, tmp_path: Path, damage: bytes
) -> None:
    task = make_task([b""])
    ShardConversion(JsonLines({}))(task)
    (tmp_path / "stage/out").write_bytes(damage + b"\n")
    with pytest.raises((ValueError, LookupError)):
        list(JsonLines({}).read(task))

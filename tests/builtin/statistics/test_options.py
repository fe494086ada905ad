from __future__ import annotations

import pytest

from tfrecreg.builtin.statistics.options import StatisticsOptions
from tfrecreg.core.values.errors import SchemaError, UsageError

SCHEMA = """
feature { name: "image" type: BYTES image_domain {} }
feature { name: "text" type: BYTES }
"""


def test_images_are_the_features_with_an_image_domain() -> None:
    assert StatisticsOptions(schema=SCHEMA).images() == ("image",)
    assert StatisticsOptions().images() == ()


def test_the_digest_tells_all_that_the_result_depends_on() -> None:
    base = StatisticsOptions(schema=SCHEMA)
    assert base.digest == StatisticsOptions(schema=SCHEMA, schema_path="elsewhere").digest
    others = [
        StatisticsOptions(),
        StatisticsOptions(schema=SCHEMA + "# a remark"),
        StatisticsOptions(schema=SCHEMA, num_histogram_buckets=7),
        StatisticsOptions(schema=SCHEMA, num_top_values=3),
    ]
    assert len({base.digest, *(each.digest for each in others)}) == 5


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"num_top_values": 0}, "`num_top_values` of statistics should be at least 1, found 0"),
    ],
)
def test_options_that_mean_nothing_are_refused(wrong, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        StatisticsOptions(**wrong)
    assert caught.value.message == told
    assert caught.value.hint


def test_a_schema_that_does_not_parse_is_told_with_its_place() -> None:
    with pytest.raises(SchemaError) as caught:
        StatisticsOptions(schema="feature {", schema_path="here.pbtxt").schema_proto()
    assert caught.value.message.startswith("here.pbtxt:1:")

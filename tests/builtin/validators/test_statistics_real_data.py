"""Real records of other people against their own schemas: the verdict is that of TFDV by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.reports import Report
from tfrecreg.core.check.run import check
from tfrecreg.core.values.codes.pages import anomaly_code
from tfrecreg.core.values.config import FailOn

TESTDATA = "tfrecord/tfx/components/testdata"
SETS = {
    "taxi": (
        f"{TESTDATA}/csv_example_gen/Split-{{split}}",
        "tfrecord/tfx/examples/chicago_taxi_pipeline/data/user_provided_schema/schema.pbtxt",
    ),
    "penguin": (
        f"{TESTDATA}/penguin/data/Split-{{split}}",
        f"{TESTDATA}/penguin/schema/schema.pbtxt",
    ),
}


@pytest.fixture
def tfdv() -> Any:
    return pytest.importorskip(
        "tensorflow_data_validation", reason="the extra `tfdv` is not installed"
    )


def judged(files: str, schema: Path | None) -> Report:
    options = CheckOptions(
        only=("statistics",),
        schema=None if schema is None else str(schema),
        fail_on=FailOn.NEVER,
    )
    (report,) = check([files], options=options)
    return report


@pytest.mark.slow
@pytest.mark.realdata
@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("split", ["train", "eval"])
def test_anomalies_are_those_of_tfdv_called_by_hand(tfdv, realdata, tmp_path, name, split) -> None:
    import tensorflow as tf

    folder, schema = (realdata / part.format(split=split) for part in SETS[name])
    files = sorted(str(path) for path in folder.glob("*.gz"))
    records = [
        record.numpy()
        for path in files
        for record in tf.data.TFRecordDataset(path, compression_type="GZIP")
    ]
    by_hand = tfdv.validate_statistics(_statistics(records), tfdv.load_schema_text(str(schema)))
    expected = {
        (".".join(info.path.step), anomaly_code(reason.type), reason.description.rstrip(". "))
        for info in by_hand.anomaly_info.values()
        for reason in info.reason
    }
    report = judged(str(folder), schema)
    found = {
        (each.locations[0].feature, each.code, each.message.partition(": ")[2])
        for each in report.findings
    }
    assert found == expected
    assert report.measures[0].value == len(records)


def _statistics(records: list[bytes]) -> object:
    """TFDV's statistics of serialized examples, decoded by its own decoder."""
    from tensorflow_data_validation import StatsOptions
    from tensorflow_data_validation.statistics import stats_impl
    from tfx_bsl.coders.example_coder import ExamplesToRecordBatchDecoder

    batch = ExamplesToRecordBatchDecoder().DecodeBatch(records)
    return stats_impl.generate_statistics_in_memory(batch, StatsOptions())


@pytest.mark.medium
@pytest.mark.realdata
@pytest.mark.usefixtures("tfdv")
def test_sequence_examples_are_said_to_be_not_applicable(realdata: Path) -> None:
    folder = realdata / TESTDATA / "tfrecord_sequence/*/*.gz"
    schema = realdata / SETS["taxi"][1]
    report = judged(str(folder), schema)
    assert report.findings == ()
    told = [each.text for each in report.measures] + [each.reason for each in report.skipped]
    assert any("no Examples to judge" in each or "SequenceExample" in each for each in told), told

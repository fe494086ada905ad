"""The codes of TFDV's anomalies are those of TensorFlow Metadata's enumeration."""

from __future__ import annotations

from tensorflow_metadata.proto.v0.anomalies_pb2 import AnomalyInfo

from tfrecreg.core.values.codes import CORE_CODES, CodeList, codes_on
from tfrecreg.core.values.codes.pages import anomaly_code, record_code


def test_every_type_that_tensorflow_metadata_knows_has_a_code_of_its_number() -> None:
    types = {anomaly_code(number): name for name, number in AnomalyInfo.Type.items() if number}
    codes = codes_on("tfdv")
    assert types.keys() <= codes.keys()
    # One is newer than the oldest TensorFlow Metadata that is supported.
    assert codes.keys() - types.keys() <= {"SCH188"}
    for name, type_name in types.items():
        assert f"`{type_name}`" in codes[name].page
        assert codes[name].rule == f"tfdv-{type_name.lower().replace('_', '-')}"
        assert CORE_CODES[name] is codes[name]


def test_records_that_cause_an_anomaly_have_a_code_of_the_validator_schema() -> None:
    named = {record_code(name) for name in codes_on("tfdv")}
    assert named <= {"", *(code.code for code in CodeList("SCH00*"))}
    assert (record_code("SCH114"), record_code("SCH179")) == ("SCH006", "SCH006")
    assert record_code("SCH163") == ""


def test_other_codes_are_not_caused_by_records() -> None:
    assert [record_code(name) for name in ("SCH006", "SCH199", "CRC002", "")] == [""] * 4

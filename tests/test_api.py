from __future__ import annotations

import tfrecreg.api

NAMES = """
Cacheable Code CommandRecord Conversion Decoder DecoderRecord EngineRecord Entry Example
ExporterRecord Fault Feature FeatureDecoder Finding ImageError ImageHeader Item JsonCodec Kind
Location Manifest Measure MissingExtraError MissingFileError Need Part RawDataError RawFile Reader
RecordBatch RecordProblem RecordValidator Remark ReportFormatRecord Severity Shard Skipped Source
SourceRecord Storage StorageError StreamEnd Tally Target TensorflowOutcome Thumbnail Undecodable
UsageError Validator ValidatorRecord Visitor Written bundled_schema bytes_feature float_feature
hookimpl int64_feature is_truncated key_from normal_splits open_local read_header read_limits
require_pillow safe shared_decoder sniff unset_feature
"""


def test_what_plugins_may_import_is_exactly_this() -> None:
    assert tfrecreg.api.__all__ == NAMES.split()


def test_every_name_is_there_and_described_in_the_map() -> None:
    for name in tfrecreg.api.__all__:
        assert hasattr(tfrecreg.api, name)
        assert f"`{name}`" in (tfrecreg.api.__doc__ or "")


def test_plugins_get_no_way_to_write_files() -> None:
    assert not hasattr(tfrecreg.api, "LocalStorage")

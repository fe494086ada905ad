from __future__ import annotations

import tfrecreg.api

NAMES = """
Cacheable Code CommandRecord Conversion Decoder DecoderRecord EngineRecord EngineRequest Entry
Example Exchange ExportedDataset ExportedShard Exporter ExporterRecord FailureError Fault Feature
FeatureDecoder Finding Folder ImageError ImageHeader Item JsonCodec KeyedExample Kind Location
Manifest ManifestError Measure MissingExtraError MissingFileError Need Part RawDataError RawFile
Reader RecordBatch RecordExporter RecordFormat RecordProblem RecordValidator Remark RemoteEngine
Report ReportContext ReportFormat ReportFormatRecord Schema SchemaError SchemaFeature Session
Severity Shard ShardRecord ShardToExport Skipped Source SourceRecord Splitter Storage StorageError
StreamEnd Tally Target TensorflowOutcome TfrecregError Thumbnail Undecodable UsageError Validator
ValidatorRecord Visitor Writer Written bundled_schema bytes_feature canonical decode decode_pixels
did_you_mean encode engine_failed export_gzip export_plain export_unchanged float_feature hookimpl
int64_feature is_split_name is_truncated key_from keyed_examples listed location_lines
location_text new_exchange normal_splits one_line open_local parse_schema perform_work read_header
read_limits require_pillow safe safe_message session_command shared_decoder si_bytes sniff
subject_text unset_feature usable_cores verified_records why_undecodable
"""


def test_what_plugins_may_import_is_exactly_this() -> None:
    assert tfrecreg.api.__all__ == NAMES.split()


def test_every_name_is_there_and_described_in_the_map() -> None:
    for name in tfrecreg.api.__all__:
        assert hasattr(tfrecreg.api, name)
        assert f"`{name}`" in (tfrecreg.api.__doc__ or "")


def test_plugins_get_no_way_to_write_files() -> None:
    assert not hasattr(tfrecreg.api, "LocalStorage")

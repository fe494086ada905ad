from __future__ import annotations

import tfrecreg.api

NAMES = """
MAX_IMAGE_BYTES BadAnnotation Boxes Cacheable Code CommandRecord Conversion DecoderRecord
EngineRecord EngineRequest Entry Example ExecutorEngine ExportedDataset ExportedShard Exporter
ExporterRecord FailureError Fault Feature FeatureDecoder Finding Folder ImageError ImageHeader
ImageNotes ImageRemarks ImageView Item JsonCodec KeyedExample Keypoints Kind Location Manifest
ManifestError Measure MediaError MediaKind MissingExtraError MissingFileError Need ObjectLabel
ObjectOptions ObjectSource
ParquetReader ParquetRows Part Polygons RawDataError RawFile RawPreview Reader ReadingFile
Recognition RecordBatch RecordCount RecordExporter RecordFormat RecordProblem RecordValidator Remark
Report ReportContext ReportFormat ReportFormatRecord Resizing Schema SchemaError
SchemaFeature Session Severity Shard ShardRecord ShardToExport SkipImage Skipped Source SourceRecord
Storage StorageError StreamEnd Symlinks Tally Target TensorflowOutcome TfrecregError
Thumbnail Undecodable UsageError Validator ValidatorRecord Visitor Writer Written box_around
bundled_schema bytes_feature canonical choose_splits class_summary collision
convert_image decode decode_pixels decode_resized did_you_mean digest_pixels encode
export_gzip export_plain export_unchanged feature_from_json feature_schema feature_to_json
float_feature hidden_part hookimpl image_features image_schema image_size int64_feature
is_split_name
is_truncated key_from keyed_examples link_problem list_files listed location_lines location_text
media_codecs media_features media_kind media_schema missing_files no_duplicates
normal_splits object_schema one_line open_local parse_schema path_ends paths_remark png_of
read_header read_limits read_media_file read_text read_whole_file require_pillow safe safe_message
serialize_tensor session_command si_bytes sniff splits_of_files subject_text
truncation_text unset_feature usable_cores usual_split verified_records verify_pixels
why_undecodable
write_records written_records
"""


def test_what_plugins_may_import_is_exactly_this() -> None:
    assert sorted(tfrecreg.api.__all__) == sorted(NAMES.split())


def test_every_name_is_there_and_described_in_the_map() -> None:
    for name in tfrecreg.api.__all__:
        assert hasattr(tfrecreg.api, name)
        assert f"`{name}`" in (tfrecreg.api.__doc__ or "")


def test_plugins_get_no_way_to_write_files() -> None:
    assert not hasattr(tfrecreg.api, "LocalStorage")

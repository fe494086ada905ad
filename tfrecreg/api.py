"""The names that a plugin imports. They keep their meaning until the next major version.

- announcing: `hookimpl`, `SourceRecord`, `ValidatorRecord`, `ExporterRecord`, `ReportFormatRecord`,
  `EngineRecord`, `CommandRecord`, `DecoderRecord`; whether a source fits a folder: `RawPreview`,
  `Recognition`
- a source: `Source`, `Item`, `Skipped`, `Written`, `Remark`, `RawFile`, `RawDataError`,
  `bundled_schema`, `feature_schema`, `image_schema`, `splits_of_files`, `missing_files`,
  `Splitter`, `stratified`, `check_stratify`, `BY_HASHES`
- objects in images: `ObjectOptions`, `ObjectLabel`, `ImageView`, `ImageRemarks`, `Boxes`,
  `Keypoints`, `Polygons`, `box_around`, `image_features`, `object_schema`, `choose_splits`,
  `class_summary`; their files: `list_files`, `Symlinks`, `hidden_part`, `link_problem`,
  `read_text`, `path_ends`, `paths_remark`, `image_size`, `MAX_IMAGE_BYTES`; raised:
  `BadAnnotation`, `SkipImage`
- examples: `Example`, `Feature`, `Kind`, `bytes_feature`, `float_feature`, `int64_feature`,
  `unset_feature`, `serialize_tensor`; as JSON: `feature_to_json`, `feature_from_json`
- a validator of single records: `RecordValidator`, `RecordProblem`, `RecordCount`
- any validator: `Validator`, `Visitor`, `Need`, `Target`, `Manifest`, `Shard`, `RecordBatch`,
  `Fault`, `StreamEnd`, `Part`, `Tally`, `read_limits`, `parse_schema`; for `check --cached`:
  `Cacheable`, `JsonCodec`, `key_from`
- its reports: `Code`, `Severity`, `Finding`, `Location`, `Measure`, `TensorflowOutcome`
- a decoder of features: `FeatureDecoder`, `Thumbnail`
- an exporter: `Exporter`, `ExportedDataset`, `Schema`, `SchemaFeature`, `ShardToExport`,
  `ExportedShard`, `export_plain`, `export_gzip`, `export_unchanged`, `Folder`, `Writer`; one that
  writes records: `RecordExporter`, `RecordFormat`, `ShardRecord`, `KeyedExample`,
  `keyed_examples`, `verified_records`, `written_records`, `write_records`; `decode`, `encode`,
  `canonical`
- a report format: `ReportFormat`, `ReportContext`, `Report`; in words: `location_text`,
  `location_lines`, `subject_text`, `safe_message`, `si_bytes`
- a command: `Session`, `session_command`
- images as bytes: `sniff`, `read_header`, `is_truncated`, `truncation_text`,
  `why_undecodable`, `ImageHeader`, `ImageError`; their pixels, in this process: `decode_pixels`,
  `decode_resized`, `Resizing`
- sounds and videos by their headers, and files of any kind as features: `media_kind`,
  `media_features`, `media_schema`, `media_codecs`, `MediaKind`, `MediaError`, `read_media_file`,
  `read_whole_file`
- images decoded with limits: `verify_pixels`, `digest_pixels`, `convert_image`, `require_pillow`,
  `Conversion`, `Undecodable`
- files: `Storage`, `Entry`, `Reader`, `ReadingFile`, `ParquetReader`, `ParquetRows`, `open_local`,
  `StorageError`, `MissingFileError`
- an engine: `ExecutorEngine`, `EngineRequest`, `usable_cores`
- all: `TfrecregError`, `UsageError`, `FailureError`, `MissingExtraError`; of documents,
  `ManifestError`, `SchemaError`; `normal_splits`, `is_split_name`, `safe`, `one_line`,
  `did_you_mean`, `listed`, `no_duplicates`, `collision`

https://github.com/tfrecreg/tfrecreg/tree/main/docs/plugins.md has a complete plugin of each kind.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tfrecreg.core.build.sources.deal import BY_HASHES, Splitter, check_stratify
from tfrecreg.core.build.sources.interface import (
    Item,
    RawFile,
    Remark,
    Skipped,
    Source,
    Written,
    bundled_schema,
    feature_schema,
    image_schema,
)
from tfrecreg.core.build.sources.listing import missing_files, splits_of_files
from tfrecreg.core.check.scan.interface import (
    Cacheable,
    Need,
    Part,
    Shard,
    Target,
    Validator,
    Visitor,
)
from tfrecreg.core.check.scan.tally import JsonCodec, Tally, key_from
from tfrecreg.core.example.model import Example, Feature, Kind
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature, unset_feature
from tfrecreg.core.images.decoder import FeatureDecoder, Thumbnail
from tfrecreg.core.images.model import ImageError, ImageHeader
from tfrecreg.core.images.read import (
    is_truncated,
    read_header,
    sniff,
    truncation_text,
    why_undecodable,
)
from tfrecreg.core.plugins.guard import one_line
from tfrecreg.core.records.batch import Fault, RecordBatch, StreamEnd
from tfrecreg.core.registry.manifest import Manifest
from tfrecreg.core.storage.interface import Entry, Reader, Writer
from tfrecreg.core.storage.interface import Readable as Storage
from tfrecreg.core.storage.interface import Storage as Folder
from tfrecreg.core.storage.local import open_local
from tfrecreg.core.storage.remote_reader import ReadingFile
from tfrecreg.core.values.config import read_limits
from tfrecreg.core.values.documents import no_duplicates
from tfrecreg.core.values.errors import (
    FailureError,
    ManifestError,
    MissingExtraError,
    MissingFileError,
    RawDataError,
    SchemaError,
    StorageError,
    TfrecregError,
    UsageError,
)
from tfrecreg.core.values.findings import (
    Code,
    Finding,
    Location,
    Measure,
    Severity,
    TensorflowOutcome,
)
from tfrecreg.core.values.shards import collision, is_split_name, normal_splits
from tfrecreg.core.values.text import did_you_mean, listed, safe, si_bytes

if TYPE_CHECKING:
    from tfrecreg.core.build.media import (
        MediaError,
        MediaKind,
        media_codecs,
        media_features,
        media_kind,
        media_schema,
        read_media_file,
        read_whole_file,
    )
    from tfrecreg.core.build.sources.deal import stratified
    from tfrecreg.core.build.sources.listing import (
        MAX_IMAGE_BYTES,
        Symlinks,
        hidden_part,
        image_features,
        image_size,
        link_problem,
        list_files,
        path_ends,
        paths_remark,
        read_text,
    )
    from tfrecreg.core.build.sources.object_options import (
        BadAnnotation,
        ImageRemarks,
        ImageView,
        ObjectOptions,
        SkipImage,
        choose_splits,
        class_summary,
        object_schema,
    )
    from tfrecreg.core.build.sources.parquet import ParquetReader, ParquetRows
    from tfrecreg.core.build.sources.shapes import (
        Boxes,
        Keypoints,
        ObjectLabel,
        Polygons,
        box_around,
    )
    from tfrecreg.core.check.report_format import ReportContext, ReportFormat
    from tfrecreg.core.check.reports import (
        Report,
        location_lines,
        location_text,
        safe_message,
        subject_text,
    )
    from tfrecreg.core.check.scan.record_validator import (
        RecordCount,
        RecordProblem,
        RecordValidator,
    )
    from tfrecreg.core.example.decode import canonical, decode
    from tfrecreg.core.example.model import encode
    from tfrecreg.core.example.tensors import serialize_tensor
    from tfrecreg.core.images.decoder import (
        Conversion,
        Undecodable,
        convert_image,
        digest_pixels,
        require_pillow,
        verify_pixels,
    )
    from tfrecreg.core.images.pixels import Resizing, decode_pixels, decode_resized
    from tfrecreg.core.plugins.convert import (
        RecordExporter,
        RecordFormat,
        feature_from_json,
        feature_to_json,
    )
    from tfrecreg.core.plugins.exporters import (
        ExportedDataset,
        ExportedShard,
        Exporter,
        KeyedExample,
        ShardRecord,
        ShardToExport,
        export_gzip,
        export_plain,
        export_unchanged,
        keyed_examples,
        verified_records,
        write_records,
        written_records,
    )
    from tfrecreg.core.plugins.recognition import RawPreview, Recognition
    from tfrecreg.core.plugins.records import (
        CommandRecord,
        DecoderRecord,
        EngineRecord,
        ExporterRecord,
        ReportFormatRecord,
        SourceRecord,
        ValidatorRecord,
    )
    from tfrecreg.core.plugins.specs import hookimpl
    from tfrecreg.core.schema.definition import Schema, SchemaFeature
    from tfrecreg.core.schema.proto import parse_schema
    from tfrecreg.core.terminal.session import Session, session_command
    from tfrecreg.core.workers.executor import ExecutorEngine
    from tfrecreg.core.workers.interface import EngineRequest
    from tfrecreg.core.workers.local import usable_cores

__all__ = [
    "BY_HASHES",
    "MAX_IMAGE_BYTES",
    "BadAnnotation",
    "Boxes",
    "Cacheable",
    "Code",
    "CommandRecord",
    "Conversion",
    "DecoderRecord",
    "EngineRecord",
    "EngineRequest",
    "Entry",
    "Example",
    "ExecutorEngine",
    "ExportedDataset",
    "ExportedShard",
    "Exporter",
    "ExporterRecord",
    "FailureError",
    "Fault",
    "Feature",
    "FeatureDecoder",
    "Finding",
    "Folder",
    "ImageError",
    "ImageHeader",
    "ImageRemarks",
    "ImageView",
    "Item",
    "JsonCodec",
    "KeyedExample",
    "Keypoints",
    "Kind",
    "Location",
    "Manifest",
    "ManifestError",
    "Measure",
    "MediaError",
    "MediaKind",
    "MissingExtraError",
    "MissingFileError",
    "Need",
    "ObjectLabel",
    "ObjectOptions",
    "ParquetReader",
    "ParquetRows",
    "Part",
    "Polygons",
    "RawDataError",
    "RawFile",
    "RawPreview",
    "Reader",
    "ReadingFile",
    "Recognition",
    "RecordBatch",
    "RecordCount",
    "RecordExporter",
    "RecordFormat",
    "RecordProblem",
    "RecordValidator",
    "Remark",
    "Report",
    "ReportContext",
    "ReportFormat",
    "ReportFormatRecord",
    "Resizing",
    "Schema",
    "SchemaError",
    "SchemaFeature",
    "Session",
    "Severity",
    "Shard",
    "ShardRecord",
    "ShardToExport",
    "SkipImage",
    "Skipped",
    "Source",
    "SourceRecord",
    "Splitter",
    "Storage",
    "StorageError",
    "StreamEnd",
    "Symlinks",
    "Tally",
    "Target",
    "TensorflowOutcome",
    "TfrecregError",
    "Thumbnail",
    "Undecodable",
    "UsageError",
    "Validator",
    "ValidatorRecord",
    "Visitor",
    "Writer",
    "Written",
    "box_around",
    "bundled_schema",
    "bytes_feature",
    "canonical",
    "check_stratify",
    "choose_splits",
    "class_summary",
    "collision",
    "convert_image",
    "decode",
    "decode_pixels",
    "decode_resized",
    "did_you_mean",
    "digest_pixels",
    "encode",
    "export_gzip",
    "export_plain",
    "export_unchanged",
    "feature_from_json",
    "feature_schema",
    "feature_to_json",
    "float_feature",
    "hidden_part",
    "hookimpl",
    "image_features",
    "image_schema",
    "image_size",
    "int64_feature",
    "is_split_name",
    "is_truncated",
    "key_from",
    "keyed_examples",
    "link_problem",
    "list_files",
    "listed",
    "location_lines",
    "location_text",
    "media_codecs",
    "media_features",
    "media_kind",
    "media_schema",
    "missing_files",
    "no_duplicates",
    "normal_splits",
    "object_schema",
    "one_line",
    "open_local",
    "parse_schema",
    "path_ends",
    "paths_remark",
    "read_header",
    "read_limits",
    "read_media_file",
    "read_text",
    "read_whole_file",
    "require_pillow",
    "safe",
    "safe_message",
    "serialize_tensor",
    "session_command",
    "si_bytes",
    "sniff",
    "splits_of_files",
    "stratified",
    "subject_text",
    "truncation_text",
    "unset_feature",
    "usable_cores",
    "verified_records",
    "verify_pixels",
    "why_undecodable",
    "write_records",
    "written_records",
]

# Imported on first use: a plugin's hooks, or a decoder in a training job, need few of them.
_LATER = (
    ("tfrecreg.core.terminal.session", "Session session_command"),
    ("tfrecreg.core.workers.executor", "ExecutorEngine"),
    ("tfrecreg.core.workers.interface", "EngineRequest"),
    ("tfrecreg.core.workers.local", "usable_cores"),
    ("tfrecreg.core.example.decode", "canonical decode"),
    ("tfrecreg.core.example.model", "encode"),
    ("tfrecreg.core.example.tensors", "serialize_tensor"),
    ("tfrecreg.core.plugins.convert", "RecordExporter RecordFormat"),
    ("tfrecreg.core.plugins.exporters", "ExportedDataset Exporter"),
    ("tfrecreg.core.plugins.convert", "feature_from_json feature_to_json"),
    (
        "tfrecreg.core.plugins.exporters",
        "KeyedExample ShardRecord export_gzip keyed_examples written_records "
        "verified_records write_records",
    ),
    (
        "tfrecreg.core.plugins.exporters",
        "ExportedShard ShardToExport export_plain export_unchanged",
    ),
    (
        "tfrecreg.core.images.decoder",
        "Conversion Undecodable convert_image digest_pixels require_pillow verify_pixels",
    ),
    ("tfrecreg.core.images.pixels", "Resizing decode_pixels decode_resized"),
    (
        "tfrecreg.core.build.media",
        "MediaKind media_codecs media_features media_kind media_schema",
    ),
    ("tfrecreg.core.build.media", "read_media_file read_whole_file"),
    ("tfrecreg.core.build.media", "MediaError"),
    ("tfrecreg.core.plugins.recognition", "RawPreview Recognition"),
    (
        "tfrecreg.core.plugins.records",
        "CommandRecord DecoderRecord EngineRecord ExporterRecord "
        "ReportFormatRecord SourceRecord ValidatorRecord",
    ),
    ("tfrecreg.core.plugins.specs", "hookimpl"),
    ("tfrecreg.core.check.report_format", "ReportContext ReportFormat"),
    ("tfrecreg.core.check.reports", "Report"),
    (
        "tfrecreg.core.check.reports",
        "location_lines location_text safe_message subject_text",
    ),
    ("tfrecreg.core.check.scan.record_validator", "RecordCount RecordProblem RecordValidator"),
    ("tfrecreg.core.schema.definition", "Schema SchemaFeature"),
    ("tfrecreg.core.schema.proto", "parse_schema"),
    ("tfrecreg.core.build.sources.shapes", "Boxes ObjectLabel"),
    ("tfrecreg.core.build.sources.listing", "MAX_IMAGE_BYTES image_features image_size"),
    (
        "tfrecreg.core.build.sources.listing",
        "Symlinks hidden_part link_problem list_files path_ends paths_remark read_text",
    ),
    (
        "tfrecreg.core.build.sources.object_options",
        "ObjectOptions choose_splits class_summary object_schema",
    ),
    ("tfrecreg.core.build.sources.shapes", "Keypoints Polygons box_around"),
    (
        "tfrecreg.core.build.sources.object_options",
        "BadAnnotation ImageRemarks ImageView SkipImage",
    ),
    ("tfrecreg.core.build.sources.deal", "stratified"),
    ("tfrecreg.core.build.sources.parquet", "ParquetReader ParquetRows"),
)
_HOMES = {name: module for module, names in _LATER for name in names.split()}

if not TYPE_CHECKING:  # mypy takes the names from the imports above

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_HOMES[name]), name)

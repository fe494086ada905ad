"""The names that plugins import. Their meaning does not change before the next major version.

- A plugin is announced with `hookimpl`, `SourceRecord`, `ValidatorRecord`, `ExporterRecord`,
  `ReportFormatRecord`, `EngineRecord`, `CommandRecord` and `DecoderRecord`.
- A source tells whether it fits a folder with `RawPreview` and `Recognition`.
- A source uses `Source`, `Item`, `Skipped`, `Written`, `Remark`, `RawFile`, `RawDataError`,
  `bundled_schema`, `feature_schema`, `image_schema`, `splits_of_files` and `missing_files`.
- A source of objects in images uses `ObjectSource`, `ObjectOptions`, `ObjectLabel`, `ImageNotes`,
  `ImageView`, `ImageRemarks`, `Boxes`, `Keypoints`, `Polygons`, `box_around`, `image_features`,
  `object_schema`, `choose_splits` and `class_summary`. It finds and reads files with `list_files`,
  `Symlinks`, `hidden_part`, `link_problem`, `read_text`, `path_ends`, `paths_remark`, `image_size`
  and `MAX_IMAGE_BYTES`. It raises `BadAnnotation` and `SkipImage`.
- Examples are made with `Example`, `Feature`, `Kind`, `bytes_feature`, `float_feature`,
  `int64_feature`, `unset_feature` and `serialize_tensor`. They are converted to and from JSON with
  `feature_to_json` and `feature_from_json`.
- A validator of single records uses `RecordValidator`, `RecordProblem` and `RecordCount`.
- Any validator may use `Validator`, `Visitor`, `Need`, `Target`, `Manifest`, `Shard`,
  `RecordBatch`, `Fault`, `StreamEnd`, `Part`, `Tally`, `read_limits` and `parse_schema`. It
  supports `check --cached` with `Cacheable`, `JsonCodec` and `key_from`.
- A validator reports `Code`, `Severity`, `Finding`, `Location`, `Measure` and
  `TensorflowOutcome`.
- A decoder of features uses `FeatureDecoder` and `Thumbnail`.
- An exporter uses `Exporter`, `ExportedDataset`, `Schema`, `SchemaFeature`, `ShardToExport`,
  `ExportedShard`, `export_plain`, `export_gzip`, `export_unchanged`, `Folder` and `Writer`. It
  reads and writes records with `RecordExporter`, `RecordFormat`, `ShardRecord`, `KeyedExample`,
  `keyed_examples`, `verified_records`, `written_records`, `write_records`, `decode`, `encode` and
  `canonical`.
- A report format uses `ReportFormat`, `ReportContext` and `Report`. It makes texts with
  `location_text`, `location_lines`, `subject_text`, `safe_message` and `si_bytes`.
- A command uses `Session` and `session_command`.
- The bytes of an image are examined with `sniff`, `read_header`, `is_truncated`,
  `truncation_text`, `why_undecodable`, `ImageHeader` and `ImageError`; `png_of` makes a PNG. Pixels
  are decoded in this process with `decode_pixels`, `decode_resized` and `Resizing`.
- Headers of sounds and videos are read, and files of any kind become features, with `media_kind`,
  `media_features`, `media_schema`, `media_codecs`, `MediaKind`, `MediaError`, `read_media_file`
  and `read_whole_file`.
- Images are decoded with limits by `verify_pixels`, `digest_pixels`, `convert_image`,
  `require_pillow`, `Conversion` and `Undecodable`.
- Files are read with `Storage`, `Entry`, `Reader`, `ReadingFile`, `ParquetReader`, `ParquetRows`,
  `open_local`, `StorageError` and `MissingFileError`.
- An engine uses `ExecutorEngine`, `EngineRequest` and `usable_cores`.
- Any plugin may raise `TfrecregError`, `UsageError`, `FailureError`, `MissingExtraError`,
  `ManifestError` and `SchemaError`, and may call `normal_splits`, `usual_split`,
  `is_split_name`, `safe`, `one_line`, `did_you_mean`, `listed`, `no_duplicates` and `collision`.

https://github.com/tfrecreg/tfrecreg/tree/main/docs/plugin-examples.md has a complete plugin of each
kind.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tfrecreg.core.storage.interface import Readable as Storage
from tfrecreg.core.storage.interface import Storage as Folder

if TYPE_CHECKING:
    from tfrecreg.core.build.media import MediaError as MediaError
    from tfrecreg.core.build.media import MediaKind as MediaKind
    from tfrecreg.core.build.media import media_codecs as media_codecs
    from tfrecreg.core.build.media import media_features as media_features
    from tfrecreg.core.build.media import media_kind as media_kind
    from tfrecreg.core.build.media import media_schema as media_schema
    from tfrecreg.core.build.media import read_media_file as read_media_file
    from tfrecreg.core.build.media import read_whole_file as read_whole_file
    from tfrecreg.core.build.sources.interface import Item as Item
    from tfrecreg.core.build.sources.interface import RawFile as RawFile
    from tfrecreg.core.build.sources.interface import Remark as Remark
    from tfrecreg.core.build.sources.interface import Skipped as Skipped
    from tfrecreg.core.build.sources.interface import Source as Source
    from tfrecreg.core.build.sources.interface import Written as Written
    from tfrecreg.core.build.sources.interface import bundled_schema as bundled_schema
    from tfrecreg.core.build.sources.interface import feature_schema as feature_schema
    from tfrecreg.core.build.sources.interface import image_schema as image_schema
    from tfrecreg.core.build.sources.listing import Symlinks as Symlinks
    from tfrecreg.core.build.sources.listing import hidden_part as hidden_part
    from tfrecreg.core.build.sources.listing import link_problem as link_problem
    from tfrecreg.core.build.sources.listing import list_files as list_files
    from tfrecreg.core.build.sources.listing import missing_files as missing_files
    from tfrecreg.core.build.sources.listing import path_ends as path_ends
    from tfrecreg.core.build.sources.listing import paths_remark as paths_remark
    from tfrecreg.core.build.sources.listing import read_text as read_text
    from tfrecreg.core.build.sources.listing import splits_of_files as splits_of_files
    from tfrecreg.core.build.sources.object_source import MAX_IMAGE_BYTES as MAX_IMAGE_BYTES
    from tfrecreg.core.build.sources.object_source import BadAnnotation as BadAnnotation
    from tfrecreg.core.build.sources.object_source import ImageNotes as ImageNotes
    from tfrecreg.core.build.sources.object_source import ImageRemarks as ImageRemarks
    from tfrecreg.core.build.sources.object_source import ImageView as ImageView
    from tfrecreg.core.build.sources.object_source import ObjectOptions as ObjectOptions
    from tfrecreg.core.build.sources.object_source import ObjectSource as ObjectSource
    from tfrecreg.core.build.sources.object_source import SkipImage as SkipImage
    from tfrecreg.core.build.sources.object_source import choose_splits as choose_splits
    from tfrecreg.core.build.sources.object_source import class_summary as class_summary
    from tfrecreg.core.build.sources.object_source import image_features as image_features
    from tfrecreg.core.build.sources.object_source import image_size as image_size
    from tfrecreg.core.build.sources.object_source import object_schema as object_schema
    from tfrecreg.core.build.sources.parquet import ParquetReader as ParquetReader
    from tfrecreg.core.build.sources.parquet import ParquetRows as ParquetRows
    from tfrecreg.core.build.sources.shapes import Boxes as Boxes
    from tfrecreg.core.build.sources.shapes import Keypoints as Keypoints
    from tfrecreg.core.build.sources.shapes import ObjectLabel as ObjectLabel
    from tfrecreg.core.build.sources.shapes import Polygons as Polygons
    from tfrecreg.core.build.sources.shapes import box_around as box_around
    from tfrecreg.core.check.report_format import ReportContext as ReportContext
    from tfrecreg.core.check.report_format import ReportFormat as ReportFormat
    from tfrecreg.core.check.reports import Report as Report
    from tfrecreg.core.check.reports import location_lines as location_lines
    from tfrecreg.core.check.reports import location_text as location_text
    from tfrecreg.core.check.reports import subject_text as subject_text
    from tfrecreg.core.check.scan.interface import Cacheable as Cacheable
    from tfrecreg.core.check.scan.interface import Need as Need
    from tfrecreg.core.check.scan.interface import Part as Part
    from tfrecreg.core.check.scan.interface import Shard as Shard
    from tfrecreg.core.check.scan.interface import Target as Target
    from tfrecreg.core.check.scan.interface import Validator as Validator
    from tfrecreg.core.check.scan.interface import Visitor as Visitor
    from tfrecreg.core.check.scan.record_validator import RecordCount as RecordCount
    from tfrecreg.core.check.scan.record_validator import RecordProblem as RecordProblem
    from tfrecreg.core.check.scan.record_validator import RecordValidator as RecordValidator
    from tfrecreg.core.check.scan.tally import JsonCodec as JsonCodec
    from tfrecreg.core.check.scan.tally import Tally as Tally
    from tfrecreg.core.check.scan.tally import key_from as key_from
    from tfrecreg.core.example.decode import canonical as canonical
    from tfrecreg.core.example.decode import decode as decode
    from tfrecreg.core.example.model import Example as Example
    from tfrecreg.core.example.model import Feature as Feature
    from tfrecreg.core.example.model import Kind as Kind
    from tfrecreg.core.example.model import encode as encode
    from tfrecreg.core.example.tensors import serialize_tensor as serialize_tensor
    from tfrecreg.core.example.values import bytes_feature as bytes_feature
    from tfrecreg.core.example.values import float_feature as float_feature
    from tfrecreg.core.example.values import int64_feature as int64_feature
    from tfrecreg.core.example.values import unset_feature as unset_feature
    from tfrecreg.core.images.decoder import Conversion as Conversion
    from tfrecreg.core.images.decoder import FeatureDecoder as FeatureDecoder
    from tfrecreg.core.images.decoder import Thumbnail as Thumbnail
    from tfrecreg.core.images.decoder import Undecodable as Undecodable
    from tfrecreg.core.images.decoder import convert_image as convert_image
    from tfrecreg.core.images.decoder import digest_pixels as digest_pixels
    from tfrecreg.core.images.decoder import require_pillow as require_pillow
    from tfrecreg.core.images.decoder import verify_pixels as verify_pixels
    from tfrecreg.core.images.headers import png_of as png_of
    from tfrecreg.core.images.model import ImageError as ImageError
    from tfrecreg.core.images.model import ImageHeader as ImageHeader
    from tfrecreg.core.images.pixels import Resizing as Resizing
    from tfrecreg.core.images.pixels import decode_pixels as decode_pixels
    from tfrecreg.core.images.pixels import decode_resized as decode_resized
    from tfrecreg.core.images.read import is_truncated as is_truncated
    from tfrecreg.core.images.read import read_header as read_header
    from tfrecreg.core.images.read import sniff as sniff
    from tfrecreg.core.images.read import truncation_text as truncation_text
    from tfrecreg.core.images.read import why_undecodable as why_undecodable
    from tfrecreg.core.plugins.convert import RecordExporter as RecordExporter
    from tfrecreg.core.plugins.convert import RecordFormat as RecordFormat
    from tfrecreg.core.plugins.convert import feature_from_json as feature_from_json
    from tfrecreg.core.plugins.convert import feature_to_json as feature_to_json
    from tfrecreg.core.plugins.exporters import ExportedDataset as ExportedDataset
    from tfrecreg.core.plugins.exporters import ExportedShard as ExportedShard
    from tfrecreg.core.plugins.exporters import Exporter as Exporter
    from tfrecreg.core.plugins.exporters import KeyedExample as KeyedExample
    from tfrecreg.core.plugins.exporters import ShardRecord as ShardRecord
    from tfrecreg.core.plugins.exporters import ShardToExport as ShardToExport
    from tfrecreg.core.plugins.exporters import export_gzip as export_gzip
    from tfrecreg.core.plugins.exporters import export_plain as export_plain
    from tfrecreg.core.plugins.exporters import export_unchanged as export_unchanged
    from tfrecreg.core.plugins.exporters import keyed_examples as keyed_examples
    from tfrecreg.core.plugins.exporters import verified_records as verified_records
    from tfrecreg.core.plugins.exporters import write_records as write_records
    from tfrecreg.core.plugins.exporters import written_records as written_records
    from tfrecreg.core.plugins.guard import one_line as one_line
    from tfrecreg.core.plugins.recognition import RawPreview as RawPreview
    from tfrecreg.core.plugins.recognition import Recognition as Recognition
    from tfrecreg.core.plugins.records import CommandRecord as CommandRecord
    from tfrecreg.core.plugins.records import DecoderRecord as DecoderRecord
    from tfrecreg.core.plugins.records import EngineRecord as EngineRecord
    from tfrecreg.core.plugins.records import ExporterRecord as ExporterRecord
    from tfrecreg.core.plugins.records import ReportFormatRecord as ReportFormatRecord
    from tfrecreg.core.plugins.records import SourceRecord as SourceRecord
    from tfrecreg.core.plugins.records import ValidatorRecord as ValidatorRecord
    from tfrecreg.core.plugins.specs import hookimpl as hookimpl
    from tfrecreg.core.records.batch import Fault as Fault
    from tfrecreg.core.records.batch import RecordBatch as RecordBatch
    from tfrecreg.core.records.batch import StreamEnd as StreamEnd
    from tfrecreg.core.registry.manifest import Manifest as Manifest
    from tfrecreg.core.schema.definition import Schema as Schema
    from tfrecreg.core.schema.definition import SchemaFeature as SchemaFeature
    from tfrecreg.core.schema.proto import parse_schema as parse_schema
    from tfrecreg.core.storage.interface import Entry as Entry
    from tfrecreg.core.storage.interface import Reader as Reader
    from tfrecreg.core.storage.interface import Writer as Writer
    from tfrecreg.core.storage.local import open_local as open_local
    from tfrecreg.core.storage.remote_reader import ReadingFile as ReadingFile
    from tfrecreg.core.terminal.session import Session as Session
    from tfrecreg.core.terminal.session import session_command as session_command
    from tfrecreg.core.values.config import read_limits as read_limits
    from tfrecreg.core.values.documents import no_duplicates as no_duplicates
    from tfrecreg.core.values.errors import FailureError as FailureError
    from tfrecreg.core.values.errors import ManifestError as ManifestError
    from tfrecreg.core.values.errors import MissingExtraError as MissingExtraError
    from tfrecreg.core.values.errors import MissingFileError as MissingFileError
    from tfrecreg.core.values.errors import RawDataError as RawDataError
    from tfrecreg.core.values.errors import SchemaError as SchemaError
    from tfrecreg.core.values.errors import StorageError as StorageError
    from tfrecreg.core.values.errors import TfrecregError as TfrecregError
    from tfrecreg.core.values.errors import UsageError as UsageError
    from tfrecreg.core.values.findings import Code as Code
    from tfrecreg.core.values.findings import Finding as Finding
    from tfrecreg.core.values.findings import Location as Location
    from tfrecreg.core.values.findings import Measure as Measure
    from tfrecreg.core.values.findings import Severity as Severity
    from tfrecreg.core.values.findings import TensorflowOutcome as TensorflowOutcome
    from tfrecreg.core.values.shards import collision as collision
    from tfrecreg.core.values.shards import is_split_name as is_split_name
    from tfrecreg.core.values.shards import normal_splits as normal_splits
    from tfrecreg.core.values.shards import usual_split as usual_split
    from tfrecreg.core.values.text import did_you_mean as did_you_mean
    from tfrecreg.core.values.text import listed as listed
    from tfrecreg.core.values.text import safe as safe
    from tfrecreg.core.values.text import safe_message as safe_message
    from tfrecreg.core.values.text import si_bytes as si_bytes
    from tfrecreg.core.workers.executor import ExecutorEngine as ExecutorEngine
    from tfrecreg.core.workers.interface import EngineRequest as EngineRequest
    from tfrecreg.core.workers.local import usable_cores as usable_cores

# Imported on first use: a plugin's hooks, or a decoder in a training job, need few of them.
_LATER = {
    "tfrecreg.core.build.media": (
        "MediaError MediaKind media_codecs media_features media_kind media_schema "
        "read_media_file read_whole_file"
    ),
    "tfrecreg.core.build.sources.interface": (
        "Item RawFile Remark Skipped Source Written bundled_schema feature_schema image_schema"
    ),
    "tfrecreg.core.build.sources.listing": (
        "Symlinks hidden_part link_problem list_files missing_files path_ends paths_remark "
        "read_text splits_of_files"
    ),
    "tfrecreg.core.build.sources.object_source": (
        "BadAnnotation ImageNotes ImageRemarks ImageView MAX_IMAGE_BYTES ObjectOptions "
        "ObjectSource SkipImage choose_splits class_summary image_features image_size "
        "object_schema"
    ),
    "tfrecreg.core.build.sources.parquet": "ParquetReader ParquetRows",
    "tfrecreg.core.build.sources.shapes": "Boxes Keypoints ObjectLabel Polygons box_around",
    "tfrecreg.core.check.report_format": "ReportContext ReportFormat",
    "tfrecreg.core.check.reports": "Report location_lines location_text subject_text",
    "tfrecreg.core.check.scan.interface": "Cacheable Need Part Shard Target Validator Visitor",
    "tfrecreg.core.check.scan.record_validator": "RecordCount RecordProblem RecordValidator",
    "tfrecreg.core.check.scan.tally": "JsonCodec Tally key_from",
    "tfrecreg.core.example.decode": "canonical decode",
    "tfrecreg.core.example.model": "Example Feature Kind encode",
    "tfrecreg.core.example.tensors": "serialize_tensor",
    "tfrecreg.core.example.values": "bytes_feature float_feature int64_feature unset_feature",
    "tfrecreg.core.images.decoder": (
        "Conversion FeatureDecoder Thumbnail Undecodable convert_image digest_pixels "
        "require_pillow verify_pixels"
    ),
    "tfrecreg.core.images.headers": "png_of",
    "tfrecreg.core.images.model": "ImageError ImageHeader",
    "tfrecreg.core.images.pixels": "Resizing decode_pixels decode_resized",
    "tfrecreg.core.images.read": "is_truncated read_header sniff truncation_text why_undecodable",
    "tfrecreg.core.plugins.convert": (
        "RecordExporter RecordFormat feature_from_json feature_to_json"
    ),
    "tfrecreg.core.plugins.exporters": (
        "ExportedDataset ExportedShard Exporter KeyedExample ShardRecord ShardToExport "
        "export_gzip export_plain export_unchanged keyed_examples verified_records "
        "write_records written_records"
    ),
    "tfrecreg.core.plugins.guard": "one_line",
    "tfrecreg.core.plugins.recognition": "RawPreview Recognition",
    "tfrecreg.core.plugins.records": (
        "CommandRecord DecoderRecord EngineRecord ExporterRecord ReportFormatRecord "
        "SourceRecord ValidatorRecord"
    ),
    "tfrecreg.core.plugins.specs": "hookimpl",
    "tfrecreg.core.records.batch": "Fault RecordBatch StreamEnd",
    "tfrecreg.core.registry.manifest": "Manifest",
    "tfrecreg.core.schema.definition": "Schema SchemaFeature",
    "tfrecreg.core.schema.proto": "parse_schema",
    "tfrecreg.core.storage.interface": "Entry Reader Writer",
    "tfrecreg.core.storage.local": "open_local",
    "tfrecreg.core.storage.remote_reader": "ReadingFile",
    "tfrecreg.core.terminal.session": "Session session_command",
    "tfrecreg.core.values.config": "read_limits",
    "tfrecreg.core.values.documents": "no_duplicates",
    "tfrecreg.core.values.errors": (
        "FailureError ManifestError MissingExtraError MissingFileError RawDataError SchemaError "
        "StorageError TfrecregError UsageError"
    ),
    "tfrecreg.core.values.findings": "Code Finding Location Measure Severity TensorflowOutcome",
    "tfrecreg.core.values.shards": "collision is_split_name normal_splits usual_split",
    "tfrecreg.core.values.text": "did_you_mean listed safe safe_message si_bytes",
    "tfrecreg.core.workers.executor": "ExecutorEngine",
    "tfrecreg.core.workers.interface": "EngineRequest",
    "tfrecreg.core.workers.local": "usable_cores",
}
_HOMES = {name: module for module, names in _LATER.items() for name in names.split()}

__all__ = ["Folder", "Storage", *_HOMES]

if not TYPE_CHECKING:  # mypy takes the names from the imports above

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_HOMES[name]), name)

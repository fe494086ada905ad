"""The names that a plugin imports. They keep their meaning until the next major version.

- announcing: `hookimpl`, `SourceRecord`, `ValidatorRecord`, `ExporterRecord`, `ReportFormatRecord`,
  `EngineRecord`, `CommandRecord`, `DecoderRecord`
- a source: `Source`, `Item`, `Skipped`, `Written`, `Remark`, `RawFile`, `RawDataError`,
  `bundled_schema`
- examples: `Example`, `Feature`, `Kind`, `bytes_feature`, `float_feature`, `int64_feature`,
  `unset_feature`
- a validator of single records: `RecordValidator`, `RecordProblem`
- any validator: `Validator`, `Visitor`, `Need`, `Target`, `Manifest`, `Shard`, `RecordBatch`,
  `Fault`, `StreamEnd`, `Part`, `Tally`, `read_limits`; for `check --cached`: `Cacheable`,
  `JsonCodec`, `key_from`
- its reports: `Code`, `Severity`, `Finding`, `Location`, `Measure`, `TensorflowOutcome`
- a decoder of features: `FeatureDecoder`, `Thumbnail`
- images as bytes: `sniff`, `read_header`, `is_truncated`, `ImageHeader`, `ImageError`
- images decoded, in a process with limits: `Decoder`, `shared_decoder`, `require_pillow`,
  `Conversion`, `Undecodable`
- files: `Storage`, `Entry`, `Reader`, `open_local`, `StorageError`, `MissingFileError`
- an engine: `RemoteEngine`, `EngineRequest`, `perform_work`, `engine_failed`, `usable_cores`; for
  workers that take no bytes: `Exchange`, `new_exchange`, `exchange_at`
- all: `UsageError`, `MissingExtraError`, `FailureError`, `normal_splits`, `safe`, `one_line`,
  `did_you_mean`

``docs/plugins.md`` has a complete source and a complete validator.
"""

from __future__ import annotations

from tfrecreg.config import read_limits
from tfrecreg.decoding import FeatureDecoder, Thumbnail
from tfrecreg.engines.exchange import Exchange, exchange_at, new_exchange
from tfrecreg.engines.interface import EngineRequest
from tfrecreg.engines.local import usable_cores
from tfrecreg.engines.remote import RemoteEngine, engine_failed, perform_work
from tfrecreg.errors import (
    FailureError,
    MissingExtraError,
    MissingFileError,
    RawDataError,
    StorageError,
    UsageError,
)
from tfrecreg.example.features import bytes_feature, float_feature, int64_feature, unset_feature
from tfrecreg.example.model import Example, Feature, Kind
from tfrecreg.findings import Code, Finding, Location, Measure, Severity, TensorflowOutcome
from tfrecreg.guard import one_line
from tfrecreg.images.decoder import (
    Conversion,
    Decoder,
    Undecodable,
    require_pillow,
    shared_decoder,
)
from tfrecreg.images.model import ImageError, ImageHeader
from tfrecreg.images.read import is_truncated, read_header
from tfrecreg.images.sniff import sniff
from tfrecreg.manifest.model import Manifest
from tfrecreg.plugins.records import (
    CommandRecord,
    DecoderRecord,
    EngineRecord,
    ExporterRecord,
    ReportFormatRecord,
    SourceRecord,
    ValidatorRecord,
)
from tfrecreg.plugins.specs import hookimpl
from tfrecreg.records.batch import Fault, RecordBatch, StreamEnd
from tfrecreg.scan.interface import (
    Cacheable,
    Need,
    Part,
    Shard,
    Target,
    Validator,
    Visitor,
)
from tfrecreg.scan.record_validator import RecordProblem, RecordValidator
from tfrecreg.scan.tally import JsonCodec, Tally, key_from
from tfrecreg.shards import normal_splits
from tfrecreg.sources.bundled import bundled_schema
from tfrecreg.sources.interface import (
    Item,
    RawFile,
    Remark,
    Skipped,
    Source,
    Written,
)
from tfrecreg.storage.interface import Entry, Reader
from tfrecreg.storage.interface import Readable as Storage
from tfrecreg.storage.local_copy import open_local
from tfrecreg.suggest import did_you_mean
from tfrecreg.text import safe

__all__ = [
    "Cacheable",
    "Code",
    "CommandRecord",
    "Conversion",
    "Decoder",
    "DecoderRecord",
    "EngineRecord",
    "EngineRequest",
    "Entry",
    "Example",
    "Exchange",
    "ExporterRecord",
    "FailureError",
    "Fault",
    "Feature",
    "FeatureDecoder",
    "Finding",
    "ImageError",
    "ImageHeader",
    "Item",
    "JsonCodec",
    "Kind",
    "Location",
    "Manifest",
    "Measure",
    "MissingExtraError",
    "MissingFileError",
    "Need",
    "Part",
    "RawDataError",
    "RawFile",
    "Reader",
    "RecordBatch",
    "RecordProblem",
    "RecordValidator",
    "Remark",
    "RemoteEngine",
    "ReportFormatRecord",
    "Severity",
    "Shard",
    "Skipped",
    "Source",
    "SourceRecord",
    "Storage",
    "StorageError",
    "StreamEnd",
    "Tally",
    "Target",
    "TensorflowOutcome",
    "Thumbnail",
    "Undecodable",
    "UsageError",
    "Validator",
    "ValidatorRecord",
    "Visitor",
    "Written",
    "bundled_schema",
    "bytes_feature",
    "did_you_mean",
    "engine_failed",
    "exchange_at",
    "float_feature",
    "hookimpl",
    "int64_feature",
    "is_truncated",
    "key_from",
    "new_exchange",
    "normal_splits",
    "one_line",
    "open_local",
    "perform_work",
    "read_header",
    "read_limits",
    "require_pillow",
    "safe",
    "shared_decoder",
    "sniff",
    "unset_feature",
    "usable_cores",
]

"""The bundled validators, announced the way any plugin announces its own."""

from __future__ import annotations

from collections.abc import Iterator

from tfrecreg.codes import CodeList
from tfrecreg.plugins import hookimpl
from tfrecreg.scan.interface import Validator, ValidatorRecord


@hookimpl
def tfrecreg_validators() -> Iterator[ValidatorRecord]:
    """Yield every bundled validator; their modules load when a check uses them."""
    crc, shd = CodeList("CRC*"), CodeList("SHD*")
    yield ValidatorRecord("crc", "framing, checksums and compression", crc, _crc)
    yield ValidatorRecord("manifest", "the set of files, byte by byte", shd, _manifest)
    sch, inf = CodeList("SCH00*", "SCH010"), CodeList("INF*")
    yield ValidatorRecord("schema", "every record against the schema", sch, _schema)
    yield ValidatorRecord("inflation", "size against the raw data", inf, _inflation)
    src, dup = CodeList("SRC01[6-9]"), CodeList("DUP*")
    yield ValidatorRecord("source", "pictures against their origin", src, _source)
    told = "the same content again, in one split or two"
    yield ValidatorRecord("duplicates", told, dup, _duplicates)
    img, ann = CodeList("IMG*"), CodeList("ANN*")
    yield ValidatorRecord("images", "encoded pictures", img, _images)
    yield ValidatorRecord("annotations", "labels, boxes, classes", ann, _annotations)
    told = "whole splits against the schema, by TFDV"
    yield ValidatorRecord("statistics", told, CodeList("SCH1*"), _statistics, on_request=True)
    told = "versions and splits against each other, by TFDV"
    yield ValidatorRecord("drift", told, CodeList("DRF*"), _drift, on_request=True)
    reg = CodeList("REG00[1-8]", "REG010")  # REG009 is the gate's
    yield ValidatorRecord("registry", "releases, their numbers and history", reg, _registry)


def _crc() -> type[Validator]:
    from tfrecreg.validators.crc import CrcValidator

    return CrcValidator


def _manifest() -> type[Validator]:
    from tfrecreg.validators.manifest import ManifestValidator

    return ManifestValidator


def _schema() -> type[Validator]:
    from tfrecreg.validators.schema import SchemaValidator

    return SchemaValidator


def _inflation() -> type[Validator]:
    from tfrecreg.validators.inflation import InflationValidator

    return InflationValidator


def _source() -> type[Validator]:
    from tfrecreg.validators.source import SourceValidator

    return SourceValidator


def _duplicates() -> type[Validator]:
    from tfrecreg.validators.duplicates import DuplicatesValidator

    return DuplicatesValidator


def _images() -> type[Validator]:
    from tfrecreg.validators.images import ImagesValidator

    return ImagesValidator


def _annotations() -> type[Validator]:
    from tfrecreg.validators.annotations import AnnotationsValidator

    return AnnotationsValidator


def _registry() -> type[Validator]:
    from tfrecreg.validators.registry import RegistryValidator

    return RegistryValidator


def _statistics() -> type[Validator]:
    from tfrecreg.validators.statistics import StatisticsValidator

    return StatisticsValidator


def _drift() -> type[Validator]:
    from tfrecreg.validators.drift import DriftValidator

    return DriftValidator

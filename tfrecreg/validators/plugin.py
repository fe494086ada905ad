"""The bundled validators, announced the way any plugin announces its own."""

from __future__ import annotations

from collections.abc import Iterator

from tfrecreg.codes import ann, crc, drf, dup, img, inf, reg, sch, shd, src
from tfrecreg.codes.anomalies import ANOMALIES
from tfrecreg.plugins import hookimpl
from tfrecreg.scan.interface import Validator, ValidatorRecord


@hookimpl
def tfrecreg_validators() -> Iterator[ValidatorRecord]:
    """Yield every bundled validator; their modules load when a check uses them."""
    crc_codes = [getattr(crc, name) for name in crc.__all__]
    yield ValidatorRecord("crc", "framing, checksums and compression", crc_codes, _crc)
    shd_codes = [getattr(shd, name) for name in shd.__all__]
    yield ValidatorRecord("manifest", "the set of files, byte by byte", shd_codes, _manifest)
    yield ValidatorRecord("schema", "every record against the schema", sch.OF_RECORDS, _schema)
    inf_codes = [getattr(inf, name) for name in inf.__all__]
    yield ValidatorRecord("inflation", "size against the raw data", inf_codes, _inflation)
    src_codes = [src.SRC016, src.SRC017, src.SRC018, src.SRC019]
    yield ValidatorRecord("source", "pictures against their origin", src_codes, _source)
    dup_codes = [getattr(dup, name) for name in dup.__all__]
    told = "the same content again, in one split or two"
    yield ValidatorRecord("duplicates", told, dup_codes, _duplicates)
    img_codes = [getattr(img, name) for name in img.__all__]
    yield ValidatorRecord("images", "encoded pictures", img_codes, _images)
    ann_codes = [getattr(ann, name) for name in ann.__all__]
    yield ValidatorRecord("annotations", "labels, boxes, classes", ann_codes, _annotations)
    reg_codes = [getattr(reg, name) for name in reg.__all__ if name != "REG009"]  # the gate's
    anomalies = list(ANOMALIES.values())
    told = "whole splits against the schema, by TFDV"
    yield ValidatorRecord("statistics", told, anomalies, _statistics, on_request=True)
    drf_codes = [getattr(drf, name) for name in drf.__all__]
    told = "versions and splits against each other, by TFDV"
    yield ValidatorRecord("drift", told, drf_codes, _drift, on_request=True)
    yield ValidatorRecord("registry", "releases, their numbers and history", reg_codes, _registry)


def _crc() -> type[Validator]:
    from tfrecreg.validators.crc import CrcValidator

    return CrcValidator


def _manifest() -> type[Validator]:
    from tfrecreg.validators.manifest.validator import ManifestValidator

    return ManifestValidator


def _schema() -> type[Validator]:
    from tfrecreg.validators.schema import SchemaValidator

    return SchemaValidator


def _inflation() -> type[Validator]:
    from tfrecreg.validators.inflation.validator import InflationValidator

    return InflationValidator


def _source() -> type[Validator]:
    from tfrecreg.validators.source import SourceValidator

    return SourceValidator


def _duplicates() -> type[Validator]:
    from tfrecreg.validators.duplicates.validator import DuplicatesValidator

    return DuplicatesValidator


def _images() -> type[Validator]:
    from tfrecreg.validators.images import ImagesValidator

    return ImagesValidator


def _annotations() -> type[Validator]:
    from tfrecreg.validators.annotations.validator import AnnotationsValidator

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

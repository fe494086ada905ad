"""Describes a build or release as a Croissant dataset, in JSON-LD: files, digests, records.

https://docs.mlcommons.org/croissant/docs/croissant-spec-1.0.html
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

from tfrecreg.api import (
    ExportedDataset,
    ExportedShard,
    Exporter,
    Folder,
    Manifest,
    Schema,
    SchemaFeature,
)
from tfrecreg.builtin.export.connectors import relied_on, version_notes

_Json = dict[str, Any]

CROISSANT_NAME = "croissant.json"

_TERMS = (
    "citeAs column equivalentProperty extract field fileObject fileProperty fileSet format "
    "includes isLiveDataset jsonPath key md5 parentField path recordSet references regex repeated "
    "replace samplingRate separator source subField transform"
)
"""Croissant's own terms."""
_CONTEXT: _Json = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
    **{term: f"cr:{term}" for term in _TERMS.split()},
}
"""The JSON-LD context of version 1.0 of the format."""

_SHARDS = "shards"
_SPLITS = "splits"
_RECORDS = "records"
_TYPES = {"INT": "sc:Integer", "FLOAT": "sc:Float", "BYTES": "sc:Text"}


class CroissantExporter(Exporter):
    """Writes the unchanged shards and their description."""

    reader = "Croissant"

    def finish(self, folder: Folder, shards: Sequence[ExportedShard]) -> Iterator[str]:
        """Write the description and the schema into the folder of the shards."""
        document = croissant(self.dataset, shards)
        text = json.dumps(document, indent=2, ensure_ascii=True) + "\n"
        with folder.create(CROISSANT_NAME) as writer:
            writer.write(text.encode("ascii"))
        self.dataset.write_schema(folder)
        return _notes(self.dataset)

    def how_to_read(self, folder: str) -> str:  # noqa: ARG002 - the same for all
        """How to use the description."""
        return f"the description is `{CROISSANT_NAME}`: publish it with the shards"


def croissant(dataset: ExportedDataset, shards: Sequence[ExportedShard]) -> _Json:
    """The description, as JSON-LD."""
    manifest, config = dataset.manifest, dataset.config
    document: _Json = {
        "@context": dict(sorted(_CONTEXT.items())),
        "@type": "sc:Dataset",
        "name": manifest.dataset,
        "description": config.description or f"The TFRecord dataset {manifest.dataset}.",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "version": dataset.version,
        "identifier": f"tfrecreg:content:{manifest.content}",
    }
    if config.license:
        document["license"] = config.license
    if config.citation:
        document["citeAs"] = config.citation
    if manifest.provenance is not None:
        document["datePublished"] = manifest.provenance.created
    document["distribution"] = [*_files(manifest, shards), _file_set(manifest)]
    document["recordSet"] = list(_record_sets(manifest, dataset.schema))
    return document


def _files(manifest: Manifest, shards: Sequence[ExportedShard]) -> Iterator[_Json]:
    for each in shards:
        yield {
            "@type": "cr:FileObject",
            "@id": _identity(each.name),
            "name": each.name,
            "description": f"{each.entry.records} records of the split {each.entry.split}",
            "contentUrl": _identity(each.name),
            "contentSize": f"{each.entry.bytes} B",
            "encodingFormat": _encoding(manifest),
            "sha256": each.entry.sha256,
        }


def _encoding(manifest: Manifest) -> str:
    return "application/gzip" if manifest.compression == "gzip" else "application/x-tfrecord"


def _file_set(manifest: Manifest) -> _Json:
    return {
        "@type": "cr:FileSet",
        "@id": _SHARDS,
        "name": _SHARDS,
        "description": "all shards: TFRecord files of tf.train.Example messages",
        "encodingFormat": _encoding(manifest),
        "includes": f"{manifest.dataset}-*.tfrecord-*",
    }


def _record_sets(manifest: Manifest, schema: Schema) -> Iterator[_Json]:
    yield {
        "@type": "cr:RecordSet",
        "@id": _SPLITS,
        "name": _SPLITS,
        "dataType": "cr:Split",
        "key": {"@id": f"{_SPLITS}/name"},
        "field": [
            _field(f"{_SPLITS}/name", "name", "sc:Text"),
            _field(f"{_SPLITS}/records", "records", "sc:Integer"),
        ],
        "data": [
            {f"{_SPLITS}/name": each.name, f"{_SPLITS}/records": each.records}
            for each in manifest.splits
        ],
    }
    rules = relied_on(schema)
    labels = {
        each.name: manifest.labels[each.name]
        for each in rules
        if each.kind == "INT" and manifest.labels.get(each.name)
    }
    for name, names in labels.items():
        yield _classes(name, names)
    splits = "|".join(re.escape(each.name) for each in manifest.splits)
    split = _field(f"{_RECORDS}/split", "split", "sc:Text")
    split["references"] = {"field": {"@id": f"{_SPLITS}/name"}}
    split["source"] = {
        "fileSet": {"@id": _SHARDS},
        "extract": {"fileProperty": "filename"},
        "transform": {"regex": f"^{re.escape(manifest.dataset)}-({splits})\\.tfrecord-"},
    }
    yield {
        "@type": "cr:RecordSet",
        "@id": _RECORDS,
        "name": _RECORDS,
        "description": "one record for each tf.train.Example",
        "field": [split, *(_feature(rule, rule.name in labels) for rule in rules)],
    }


def _classes(name: str, names: Sequence[str]) -> _Json:
    """The `RecordSet` of a feature's classes."""
    identity = _classes_of(name)
    return {
        "@type": "cr:RecordSet",
        "@id": identity,
        "name": identity,
        "description": f"the classes of {name}",
        "dataType": "sc:Enumeration",
        "key": {"@id": f"{identity}/number"},
        "field": [
            _field(f"{identity}/number", "number", "sc:Integer"),
            _field(f"{identity}/name", "name", "sc:Text"),
        ],
        "data": [
            {f"{identity}/number": number, f"{identity}/name": text}
            for number, text in enumerate(names)
        ],
    }


def _classes_of(feature: str) -> str:
    return f"classes/{_identity(feature)}"


def _identity(name: str) -> str:
    """A name from the data, escaped for an `@id`, which is an IRI."""
    return quote(name, safe="/", errors="surrogateescape")


def _feature(rule: SchemaFeature, has_classes: bool) -> _Json:
    kind = _TYPES.get(rule.kind or "", "sc:Text")
    if rule.is_image:
        kind = "sc:ImageObject"
    made = _field(f"{_RECORDS}/{_identity(rule.name)}", rule.name, kind)
    made["source"] = {"fileSet": {"@id": _SHARDS}, "extract": {"column": rule.name}}
    if not (rule.is_required and rule.tensor_shape == ()):
        made["repeated"] = True
    if has_classes:
        made["references"] = {"field": {"@id": f"{_classes_of(rule.name)}/number"}}
    return made


def _field(identity: str, name: str, kind: str) -> _Json:
    return {"@type": "cr:Field", "@id": identity, "name": name, "dataType": kind}


def _notes(dataset: ExportedDataset) -> Iterator[str]:
    where = f"`datasets/{dataset.manifest.dataset}.toml`"
    yield from version_notes(dataset)
    for name in ("license", "citation", "description"):
        if not getattr(dataset.config, name):
            yield f"Croissant recommends a {name}: {where} has no `{name}`"

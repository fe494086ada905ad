"""The options of statistics, and the parts of a schema that affect them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from blake3 import blake3

from tfrecreg.core.example.model import Kind
from tfrecreg.core.schema.proto import parse_schema, schema_message

if TYPE_CHECKING:
    from tfrecreg.core.check.scan.interface import Target


class DerivedFeature(NamedTuple):
    """A feature of the schema that consists of other features."""

    name: str
    value: str
    """The feature with the values."""
    parts: tuple[str, ...]
    """If `sparse` is true, the features with the indices; otherwise the feature with the
    weights."""
    sparse: bool


_INT, _FLOAT = 2, 3
"""The enum values INT and FLOAT of `FeatureType`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsOptions:
    """The options of statistics. Everything else follows the defaults of TFDV's `StatsOptions`."""

    schema: str | None = None
    """The text of a schema. It says which bytes are images (`image_domain`) and which numbers are
    categories.
    """
    schema_path: str = "schema"
    """Origin of the schema text, for messages."""

    @property
    def digest(self) -> str:
        """Hex blake3 of all options that the result depends on."""
        return blake3((self.schema or "").encode()).hexdigest()

    @classmethod
    def of(cls, target: Target) -> StatisticsOptions:
        """The default options, with the target's own schema."""
        return cls(schema=target.schema, schema_path=target.schema_path or "schema")

    def schema_proto(self) -> Any:
        """The schema as a protobuf message. It is empty without a schema."""
        return schema_message(parse_schema(self.schema or "", self.schema_path))

    def images(self) -> tuple[str, ...]:
        """The features with an image domain, for which TFDV needs only sizes."""
        return tuple(
            feature.name
            for feature in self.schema_proto().feature
            if feature.WhichOneof("domain_info") == "image_domain"
        )

    def categories(self) -> dict[str, Kind]:
        """The features with categorical numbers, which are counted like strings, and their kind."""
        found: dict[str, Kind] = {}
        for feature in self.schema_proto().feature:
            domain = feature.WhichOneof("domain_info")
            if feature.type == _INT and (
                domain in ("bool_domain", "natural_language_domain")
                or feature.int_domain.is_categorical
            ):
                found[feature.name] = Kind.INT64
            elif feature.type == _FLOAT and feature.float_domain.is_categorical:
                found[feature.name] = Kind.FLOAT
        return found

    def derived(self) -> tuple[DerivedFeature, ...]:
        """The sparse and weighted features."""
        message = self.schema_proto()
        sparse = [
            DerivedFeature(
                each.name,
                each.value_feature.name,
                tuple(sorted({index.name for index in each.index_feature})),
                True,
            )
            for each in message.sparse_feature
        ]
        weighted = [
            DerivedFeature(
                each.name,
                ".".join(each.feature.step),
                (".".join(each.weight_feature.step),),
                False,
            )
            for each in message.weighted_feature
        ]
        return (*sparse, *weighted)

"""What statistics to make. The names, meanings and defaults are those of TFDV's `StatsOptions`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from blake3 import blake3

from tfrecreg.core.example.model import Kind
from tfrecreg.core.schema.proto import parse_schema, schema_message
from tfrecreg.core.values.errors import UsageError

_COUNTS = (
    "num_top_values",
    "num_rank_histogram_buckets",
    "num_values_histogram_buckets",
    "num_histogram_buckets",
    "num_quantiles_histogram_buckets",
    "frequency_threshold",
)


class DerivedFeature(NamedTuple):
    """A feature of the schema that consists of other features."""

    name: str
    value: str
    """The feature with the values."""
    parts: tuple[str, ...]
    """The features with indices, or the one with weights."""
    sparse: bool


_INT, _FLOAT = 2, 3
"""Numbers of `FeatureType`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsOptions:
    """Options of statistics: those of TFDV's options that are of use for a single pass.

    Weights, slices, samples, semantic domains and features of choice are not among them.
    """

    schema: str | None = None
    """The text of a schema. TFDV takes from it which bytes are images (`image_domain`) and
    which numbers are categories."""
    schema_path: str = "schema"
    """Origin of the schema text, for messages."""
    num_top_values: int = 20
    """Number of most frequent values per feature."""
    frequency_threshold: int = 1
    """Values that are less frequent are not among them."""
    num_rank_histogram_buckets: int = 1000
    """Number of values in the histogram over ranks."""
    num_values_histogram_buckets: int = 10
    """Buckets of the histogram of values per example."""
    num_histogram_buckets: int = 10
    """Buckets of equal width, of numbers."""
    num_quantiles_histogram_buckets: int = 10
    """Buckets of equal weight, of numbers."""

    def __post_init__(self) -> None:
        for name in _COUNTS:
            if getattr(self, name) < 1:
                raise UsageError(
                    f"`{name}` of statistics should be at least 1, found {getattr(self, name)}",
                    hint="without it, TFDV's own default applies",
                )

    @property
    def digest(self) -> str:
        """The blake3 of all that the result depends on, as hexadecimal digits."""
        plain = asdict(self)
        del plain["schema_path"]
        return blake3(json.dumps(plain, sort_keys=True).encode()).hexdigest()

    def schema_proto(self) -> Any:
        """The schema as protobuf's message, or None."""
        if self.schema is None:
            return None
        return schema_message(parse_schema(self.schema, self.schema_path))

    def images(self) -> tuple[str, ...]:
        """The features with an image domain, for which TFDV needs only sizes."""
        return tuple(
            feature.name
            for feature in self._features()
            if feature.WhichOneof("domain_info") == "image_domain"
        )

    def categories(self) -> dict[str, Kind]:
        """The features of numbers whose values are counted, and the kind of these numbers."""
        found: dict[str, Kind] = {}
        for feature in self._features():
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
        if message is None:
            return ()
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

    def _features(self) -> Sequence[Any]:
        message = self.schema_proto()
        return () if message is None else tuple(message.feature)

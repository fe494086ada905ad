"""What a schema says, as plain frozen values: no protobuf, picklable, comparable.

The messages they stand for are those of ``tensorflow_metadata/proto/v0/schema.proto``; what this
package has no use for (annotations' metadata, comparators, tensor representations) stays in the
text, which is kept whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

__all__ = [
    "IGNORED_STAGES",
    "SEQUENCE",
    "BoolDomain",
    "Domain",
    "Feature",
    "FeatureType",
    "FloatDomain",
    "ImageDomain",
    "IntDomain",
    "OtherDomain",
    "Presence",
    "Schema",
    "SparseFeature",
    "StringDomain",
    "StructDomain",
    "TimeDomain",
    "ValueCount",
    "WeightedFeature",
]

FeatureType = Literal["BYTES", "INT", "FLOAT", "STRUCT"]

IGNORED_STAGES = frozenset(
    {"PLANNED", "ALPHA", "DEPRECATED", "DISABLED", "DEBUG_ONLY", "VALIDATION_DERIVED"}
)
"""Life cycle stages whose features are not checked. The first five are those that TFDV treats as
deprecated; a derived feature occurs in statistics and never in records."""

SEQUENCE = "##SEQUENCE##"
"""The STRUCT feature under which TFX puts the feature lists of a SequenceExample."""


@dataclass(frozen=True, slots=True)
class Presence:
    """In how many examples a feature has to be. A bound that is not given is None."""

    min_fraction: float | None = None
    """From 0 to 1, of the examples."""
    min_count: int | None = None
    """Examples."""


@dataclass(frozen=True, slots=True)
class ValueCount:
    """How many values a feature has in an example that has it. Bounds are inclusive."""

    min: int | None = None
    max: int | None = None


@dataclass(frozen=True, slots=True)
class IntDomain:
    """Whole numbers, stored as INT, or as BYTES in decimal. Bounds are inclusive."""

    min: int | None = None
    max: int | None = None
    is_categorical: bool = False


@dataclass(frozen=True, slots=True)
class FloatDomain:
    """Numbers, stored as FLOAT, or as BYTES in decimal. Bounds are inclusive, float32."""

    min: float | None = None
    max: float | None = None
    disallow_nan: bool | None = None
    """None where the schema does not say."""
    disallow_inf: bool | None = None
    """None where the schema does not say."""
    is_categorical: bool = False


@dataclass(frozen=True, slots=True)
class StringDomain:
    """A list of the strings that are allowed."""

    values: tuple[str, ...] = ()
    is_categorical: bool = False


@dataclass(frozen=True, slots=True)
class BoolDomain:
    """0 and 1 for INT and FLOAT; for BYTES the two strings that stand for them."""

    true_value: str | None = None
    false_value: str | None = None


@dataclass(frozen=True, slots=True)
class ImageDomain:
    """The values are encoded pictures."""

    min_fraction: float | None = None
    """The least fraction of values that TensorFlow can decode."""
    max_bytes: int | None = None
    """The most bytes an encoded picture may have."""


@dataclass(frozen=True, slots=True)
class StructDomain:
    """Features inside a feature. None of them can be in a `tf.train.Example`."""

    features: tuple[Feature, ...] = ()


@dataclass(frozen=True, slots=True)
class TimeDomain:
    """Points in time, or times of a day: text in a format, or numbers in a unit."""

    name: Literal["time_domain", "time_of_day_domain"]
    """The field of the proto."""
    string_format: str = ""
    """Of BYTES, as `strptime` has it: ``%Y-%m-%d``; empty for numbers."""
    integer_format: str = ""
    """Of INT, as the proto has it: ``UNIX_SECONDS``; empty for text."""


@dataclass(frozen=True, slots=True)
class OtherDomain:
    """A meaning that is not checked record by record: text in a language, URLs, MIDs."""

    name: str
    """The field of the proto: ``url_domain``."""


Domain = (
    IntDomain
    | FloatDomain
    | StringDomain
    | BoolDomain
    | ImageDomain
    | StructDomain
    | TimeDomain
    | OtherDomain
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """What the schema says of one feature."""

    name: str
    type: FeatureType | None
    """None where the schema does not say: then any type will do."""
    presence: Presence | None = None
    shape: tuple[int | None, ...] | None = None
    """Sizes of the dimensions, ``()`` for a scalar; None where no shape is given, and for a
    dimension without a size."""
    value_count: ValueCount | None = None
    """Also where it was given as `value_counts` with a single level."""
    nested: bool = False
    """`value_counts` of more than one level: not what a `tf.train.Example` can hold."""
    domain: Domain | None = None
    """References are resolved."""
    domain_name: str = ""
    """Of the schema's own domain that `domain` came from; empty for an inline one."""
    min_domain_mass: float | None = None
    """The least fraction of values that have to be of the domain; None for all of them."""
    distinct: ValueCount | None = None
    """How many different values a split has: the proto's `unique_constraints`."""
    stage: str = ""
    """The life cycle stage: ``PRODUCTION``; empty where the schema does not say. ``DEPRECATED``
    also for the old ``deprecated: true``."""
    in_environment: tuple[str, ...] = ()
    not_in_environment: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    """Of its annotation."""
    comments: tuple[str, ...] = ()
    """Of its annotation."""

    @property
    def is_ignored(self) -> bool:
        """Whether its stage says that it is not to be checked: see :data:`IGNORED_STAGES`."""
        return self.stage in IGNORED_STAGES

    @property
    def is_required(self) -> bool:
        """Whether every example has to have it."""
        return self.presence is not None and self.presence.min_fraction == 1

    @property
    def is_picture(self) -> bool:
        """Whether its values are encoded pictures."""
        return isinstance(self.domain, ImageDomain)

    @property
    def is_label(self) -> bool:
        """Whether it is what a model learns to predict.

        It is where it has the tag ``label``, or where the last part of its name is ``label`` or
        ``labels``, as in the keys that the field has agreed on: ``image/class/label``.
        """
        last = self.name.rpartition("/")[2].lower()
        return "label" in self.tags or last in ("label", "labels")


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseFeature:
    """A sparse tensor that several features make together: its indices and its values."""

    name: str
    """No feature of the examples has it."""
    indices: tuple[str, ...]
    """Features of the type INT: one a dimension, each with an index a value."""
    values: str
    """The feature of the values."""
    shape: tuple[int | None, ...] | None = None
    """Of the dense tensor; None where it is not given, and for a dimension without a size."""
    is_sorted: bool = False
    """Whether the indices rise, the first dimension first."""
    presence: Presence | None = None
    stage: str = ""

    @property
    def is_ignored(self) -> bool:
        """As of a feature."""
        return self.stage in IGNORED_STAGES


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedFeature:
    """A feature of which another one says how much each value weighs."""

    name: str
    """No feature of the examples has it."""
    feature: str
    weight: str
    """The feature of the weights: as many as there are values."""
    stage: str = ""

    @property
    def is_ignored(self) -> bool:
        """As of a feature."""
        return self.stage in IGNORED_STAGES


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema that parsed and does not contradict itself."""

    text: str = field(repr=False)
    """The file's text as it is, comments and all."""
    where: str
    """Where the text came from, for messages."""
    features: tuple[Feature, ...]
    """In the file's order."""
    sparse: tuple[SparseFeature, ...] = ()
    weighted: tuple[WeightedFeature, ...] = ()
    examples: ValueCount | None = None
    """How many examples the dataset has: the proto's `dataset_constraints`."""
    default_environments: tuple[str, ...] = ()
    ragged: bool = False
    """Whether features of variable length should be read as ragged tensors."""
    remarks: tuple[str, ...] = ()
    """What is legal and probably not meant, a line each."""

    def environments(self) -> tuple[str, ...]:
        """Every environment that the schema names, sorted."""
        names = set(self.default_environments)
        for feature in self.features:
            names.update(feature.in_environment, feature.not_in_environment)
        return tuple(sorted(names))

    def describes_sequences(self) -> bool:
        """Whether it is a schema of SequenceExamples rather than of Examples."""
        return any(feature.name == SEQUENCE for feature in self.features)

    def pictures(self) -> tuple[str, ...]:
        """Names of the features that hold encoded pictures, in order of the schema."""
        return tuple(feature.name for feature in self.features if feature.is_picture)

    def labels(self) -> tuple[str, ...]:
        """Names of the features that hold labels, in order of the schema."""
        return tuple(feature.name for feature in self.features if feature.is_label)

"""The parts of a schema as frozen values: picklable, comparable, without protobuf.

They follow the messages of ``tensorflow_metadata/proto/v0/schema.proto``. The parts omit
fields that tfrecreg does not use (annotation metadata, comparators, tensor representations).
:attr:`Schema.text` keeps these fields.

Where the meaning of a schema is unclear, these rules apply:

- A feature is **required** if ``presence.min_fraction`` is 1. A smaller `min_fraction` is a
  condition for the whole split, like `min_count`. Both are checked after the split was read.
- A **shape** fixes the number of values if the feature is present, but does not require the
  feature. TFDV, in contrast, requires it in every example.
- A feature whose **kind is not set** counts as missing. An **empty list** counts as present, but
  has no values. TFDV and `tf.io.parse_example` follow both of these rules.
- If the check has an **environment**, records should not have the features that this environment
  excludes. TFDV has the same rule. Without an environment, every feature is expected.
- The **stages** PLANNED, ALPHA, DEPRECATED, DISABLED, DEBUG_ONLY and VALIDATION_DERIVED exclude a
  feature from validation, so neither its presence nor its values matter.
- **NaN and infinity** are errors if the float domain forbids them with `disallow_nan` or
  `disallow_inf`. If the domain sets neither field, NaN and infinity give warnings, because training
  on them fails silently. To allow them, set ``disallow_nan: false`` and ``disallow_inf: false``.
- An example has all parts of a **sparse feature** or none of them. In each dimension, a sparse
  feature has one index per value, and the indices are within `dense_shape`. A **weighted feature**
  has one weight per value. A sparse or weighted feature belongs to an environment if all of its
  parts belong to that environment.
- **Distinct values** (`unique_constraints`) are counted in each split. **Examples**
  (`dataset_constraints`) are counted over all splits.
- No example can hold a feature of type **STRUCT**, so a required STRUCT feature is always missing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Literal, NamedTuple

FeatureType = Literal["BYTES", "INT", "FLOAT", "STRUCT"]

IGNORED_STAGES = frozenset(
    {"PLANNED", "ALPHA", "DEPRECATED", "DISABLED", "DEBUG_ONLY", "VALIDATION_DERIVED"}
)
"""Life cycle stages whose features are not checked. TFDV treats the first five as deprecated. A
derived feature occurs only in statistics, never in records."""

PIXELS = re.compile(r"pixels:([1-9][0-9]{0,4})x([1-9][0-9]{0,4})x([1-4])", re.ASCII)
"""The tag of a feature that holds an image's pixels. It gives height, width and channels."""

SEQUENCE = "##SEQUENCE##"
"""The STRUCT feature under which TFX puts the feature lists of a SequenceExample."""


@dataclass(frozen=True, slots=True)
class ValueCount:
    """Inclusive bounds of a count. None: no bound."""

    min: int | None = None
    max: int | None = None

    def allows(self, number: int) -> bool:
        """Whether a count is within the bounds."""
        return (self.min or 0) <= number and (self.max is None or number <= self.max)


@dataclass(frozen=True, slots=True)
class IntDomain:
    """Whole numbers, stored as INT or as decimal text in BYTES. Bounds are inclusive."""

    min: int | None = None
    max: int | None = None
    is_categorical: bool = False


@dataclass(frozen=True, slots=True)
class FloatDomain:
    """Numbers, stored as FLOAT or as decimal text in BYTES. Bounds are inclusive, float32."""

    min: float | None = None
    max: float | None = None
    disallow_nan: bool | None = None
    """None if not set."""
    disallow_inf: bool | None = None
    """None if not set."""
    is_categorical: bool = False


@dataclass(frozen=True)
class StringDomain:
    """The allowed strings."""

    values: tuple[str, ...] = ()
    is_categorical: bool = False

    @cached_property
    def allowed(self) -> frozenset[bytes]:
        """The strings as UTF-8."""
        return frozenset(value.encode() for value in self.values)


@dataclass(frozen=True)
class BoolDomain:
    """Truth values: 0 and 1 for INT and FLOAT, and two given strings for BYTES."""

    true_value: str | None = None
    false_value: str | None = None

    @cached_property
    def allowed(self) -> frozenset[bytes]:
        """The strings for BYTES, as UTF-8."""
        given = (self.true_value, self.false_value)
        return frozenset(value.encode() for value in given if value is not None)


@dataclass(frozen=True, slots=True)
class ImageDomain:
    """Encoded images."""

    min_fraction: float | None = None
    """Minimum fraction of values that TensorFlow can decode."""
    max_bytes: int | None = None
    """Maximum size of an encoded image."""


@dataclass(frozen=True, slots=True)
class StructDomain:
    """Features inside a feature. A `tf.train.Example` cannot hold them."""

    features: tuple[SchemaFeature, ...] = ()


@dataclass(frozen=True, slots=True)
class TimeDomain:
    """Timestamps or times of day, stored as text in a format or as numbers in a unit."""

    name: str
    """Field of the proto: ``time_domain`` or ``time_of_day_domain``."""
    string_format: str = ""
    """Format of BYTES values, as in `strptime`, for example ``%Y-%m-%d``. Empty for numbers."""
    integer_format: str = ""
    """Unit of INT values, as in the proto, for example ``UNIX_SECONDS``. Empty for text."""


@dataclass(frozen=True, slots=True)
class OtherDomain:
    """A domain that is not checked in records, for example text in a language, URLs or MIDs."""

    name: str
    """Field of the proto: ``url_domain``."""


ValueDomain = IntDomain | FloatDomain | StringDomain | BoolDomain | ImageDomain | TimeDomain
"""Domains for which each value is checked."""

Domain = ValueDomain | StructDomain | OtherDomain


class _Length(NamedTuple):
    low: int
    high: int | None
    multiple_of: int


@dataclass(frozen=True, kw_only=True)
class _Declaration:
    name: str
    stage: str = ""
    """Life cycle stage, such as ``PRODUCTION``; empty if not set. The old ``deprecated: true`` also
    gives ``DEPRECATED``."""

    @property
    def is_ignored(self) -> bool:
        """Whether its stage excludes it from validation: see :data:`IGNORED_STAGES`."""
        return self.stage in IGNORED_STAGES


@dataclass(frozen=True, kw_only=True)
class _Countable(_Declaration):
    min_fraction: float = 0.0
    """Minimum fraction of the examples of a split that have it."""
    min_count: int = 0
    """Minimum number of examples in a split that have it."""

    @property
    def is_required(self) -> bool:
        """Whether every example must have it."""
        return self.min_fraction == 1


@dataclass(frozen=True, kw_only=True)
class SchemaFeature(_Countable):
    """A feature's declaration. Fields hold the declared values; properties hold derived values."""

    type: FeatureType | None
    """None if not set. See :attr:`kind`."""
    shape: tuple[int | None, ...] | None = None
    """Sizes of the dimensions, None if unknown; ``()`` is a scalar. None without a shape."""
    value_count: ValueCount | None = None
    """Bounds of the number of values, from `value_count` or from `value_counts` with one level."""
    levels: tuple[ValueCount, ...] = ()
    """`value_counts` with several levels, outermost first. No `tf.train.Example` can hold them."""
    domain: Domain | None = None
    """Domain with references resolved. See :attr:`checked_domain`."""
    domain_name: str = ""
    """Name of the schema-level domain that `domain` came from; empty if the domain is inline."""
    min_domain_mass: float | None = None
    """Fraction of the values that must be in the domain; None for all. See :attr:`domain_mass`."""
    distinct: ValueCount | None = None
    """Number of distinct values in a split, for INT and BYTES: `unique_constraints`."""
    in_environment: tuple[str, ...] = ()
    not_in_environment: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    """Tags of its annotation."""
    comments: tuple[str, ...] = ()
    """Comments of its annotation."""

    @property
    def kind(self) -> FeatureType | None:
        """The type of its values; None for any type. Domains of strings and images imply BYTES."""
        implied = isinstance(self.domain, (StringDomain, ImageDomain))
        return self.type or ("BYTES" if implied else None)

    @property
    def min_values(self) -> int:
        """Minimum number of values in an example that has the feature."""
        return self._length.low

    @property
    def max_values(self) -> int | None:
        """Maximum number of values; None for no limit."""
        return self._length.high

    @property
    def multiple_of(self) -> int:
        """The number of values must be a multiple of this. It is 1 unless a dimension of the shape
        has no size.
        """
        return self._length.multiple_of

    @cached_property
    def _length(self) -> _Length:
        if self.shape is not None:
            known = prod(size for size in self.shape if size is not None)
            if None not in self.shape or known == 0:
                return _Length(known, known, 1)
            return _Length(0, None, known)
        count = self.value_count or ValueCount()
        return _Length(count.min or 0, count.max, 1)

    @property
    def tensor_shape(self) -> tuple[int | None, ...] | None:
        """The shape. Its default is one dimension if the number of values is fixed and positive."""
        if self.shape is None and self.min_values and self.min_values == self.max_values:
            return (self.min_values,)
        return self.shape

    @cached_property
    def checked_domain(self) -> ValueDomain | None:
        """The domain that each value is checked against; None if any value passes.

        A FLOAT feature without a domain gets an empty domain, so that values that are not finite
        give a warning. If the feature has no type, only domains of strings and images are checked.
        """
        domain = self.domain
        if isinstance(domain, (StringDomain, ImageDomain)):
            return domain
        if isinstance(domain, (IntDomain, FloatDomain, BoolDomain, TimeDomain)):
            return domain if self.type is not None else None
        return FloatDomain() if self.type == "FLOAT" else None

    @property
    def domain_mass(self) -> float:
        """Minimum fraction of values in the domain. As in TFDV, it is 1 without a string domain."""
        if self.min_domain_mass is None or not isinstance(self.domain, StringDomain):
            return 1.0
        return self.min_domain_mass

    @property
    def is_image(self) -> bool:
        """Whether the feature's values are encoded images."""
        return isinstance(self.domain, ImageDomain)

    @property
    def is_text(self) -> bool:
        """Whether the schema declares the feature's values as UTF-8 text."""
        return self.kind == "BYTES" and isinstance(self.domain, (StringDomain, OtherDomain))

    @property
    def channels(self) -> int | None:
        """Number of channels, 1 or 3, as declared by a tag such as ``channels:1``."""
        return next((number for number in (1, 3) if f"channels:{number}" in self.tags), None)

    @cached_property
    def pixels(self) -> tuple[int, int, int] | None:
        """Height, width and channels, as declared by a tag such as ``pixels:28x28x1``."""
        found = filter(None, map(PIXELS.fullmatch, self.tags))
        return next(((int(hit[1]), int(hit[2]), int(hit[3])) for hit in found), None)

    @property
    def is_label(self) -> bool:
        """Whether a model learns to predict the feature.

        A label has the tag ``label``, or the last part of its name is ``label`` or ``labels``, as
        in the usual key ``image/class/label``.
        """
        last = self.name.rpartition("/")[2].lower()
        return "label" in self.tags or last in ("label", "labels")


@dataclass(frozen=True, kw_only=True)
class SparseFeature(_Countable):
    """A sparse tensor of index features and a value feature. The field `name` is the name of the
    tensor, not of a feature in examples.
    """

    indices: tuple[str, ...]
    """One INT feature per dimension. Each has one index per value."""
    values: str
    """The feature with the values."""
    shape: tuple[int | None, ...] | None = None
    """Shape of the dense tensor; None if not given. A dimension without a size is None."""
    is_sorted: bool = False
    """Whether the indices must be strictly ascending. The first dimension is compared first."""


@dataclass(frozen=True, kw_only=True)
class WeightedFeature(_Declaration):
    """A pair of features: one holds values, the other holds the weights of these values. The field
    `name` is the name of the pair, not of a feature in examples.
    """

    feature: str
    weight: str
    """The feature with the weights, one per value."""


@dataclass(frozen=True, slots=True)
class Schema:
    """A parsed schema that does not contradict itself."""

    text: str = field(repr=False)
    """The file's text, with its comments."""
    where: str
    """Source of the text, for messages."""
    features: tuple[SchemaFeature, ...]
    """Features in the file's order."""
    sparse: tuple[SparseFeature, ...] = ()
    weighted: tuple[WeightedFeature, ...] = ()
    examples: ValueCount = ValueCount()
    """Number of examples of the dataset: `dataset_constraints`."""
    default_environments: tuple[str, ...] = ()
    ragged: bool = False
    """Whether features of variable length should be read as ragged tensors."""

    def environments(self) -> tuple[str, ...]:
        """Every environment that the schema names, sorted."""
        names = set(self.default_environments)
        for feature in self.features:
            names.update(feature.in_environment, feature.not_in_environment)
        return tuple(sorted(names))

    def describes_sequences(self) -> bool:
        """Whether it describes SequenceExamples instead of Examples."""
        return any(feature.name == SEQUENCE for feature in self.features)

    def images(self) -> tuple[str, ...]:
        """Names of the features that hold encoded images, in the schema's order."""
        return tuple(feature.name for feature in self.features if feature.is_image)

    def pixels(self) -> dict[str, tuple[int, int, int]]:
        """Height, width and channels of the features that hold pixels, by name."""
        return {each.name: each.pixels for each in self.features if each.pixels is not None}

    def byte_pixels(self) -> dict[str, tuple[int, int, int]]:
        """Like :meth:`pixels`, but only for BYTES, because bytes do not show the image's shape."""
        kinds = {each.name: each.kind for each in self.features}
        return {name: size for name, size in self.pixels().items() if kinds[name] == "BYTES"}

    def labels(self) -> tuple[str, ...]:
        """Names of the features that hold labels, in the schema's order."""
        return tuple(feature.name for feature in self.features if feature.is_label)

"""Drafts a schema from data, for people to correct.

A draft generalizes the data, so that further data of the same kind conform to the draft. A feature
gets a fixed shape only if every example has the feature with the same number of values. A feature
gets a list of strings only if it has few distinct strings, and if these strings recur often. A
feature gets bounds only if it is a label, or a height, width or channel count that all images
share. The data conform to their draft, except for features with several types.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite, isnan, prod
from typing import NamedTuple

from tfrecreg.core.example.model import DeclaredFeature, Example, Feature, Kind
from tfrecreg.core.example.tensors import read_tensor
from tfrecreg.core.images.read import sniff
from tfrecreg.core.schema.check import KIND_NAMES, counted
from tfrecreg.core.values.text import safe


class WordLimit(NamedTuple):
    """Limits of a list of strings: number of distinct strings, and bytes per string."""

    words: int
    size: int


DRAFT_LIMIT = WordLimit(50, 64)
"""A draft has no list of strings for a feature that exceeds this limit."""
_MAX_FEATURES = 10_000
"""Maximum number of features to keep. Their names come from the data, so there may be very many."""
_REPEATS = 5
"""The draft lists the strings of a feature if each occurs at least this often on average."""
_SIDES = frozenset({"height", "width", "channels"})
"""Features with the height, width or channels of an image have names that end in one of these."""
_LABELS = frozenset({"category", "category_id", "class", "class_id", "classes", "target"})
"""Last parts of the names of features that hold classes, if they do not end in ``label(s)``."""


@dataclass(slots=True)
class KindSummary:
    """A summary of a feature's values of one kind (for example INT), over all examples."""

    examples: int = 0
    values: int = 0
    fewest: int | None = None
    """Number of values per example."""
    most: int = 0
    low: float | None = None
    """Range of the finite numbers."""
    high: float | None = None
    nan: int = 0
    infinite: int = 0
    largest: int = 0
    """Size in bytes of the largest BYTES value."""
    images: Counter[str] = field(default_factory=Counter)
    """Number of BYTES values that begin like an image, by format."""
    words: set[str] | None = field(default_factory=set)
    """The distinct BYTES values; None if they exceed `limit` or a value is not text."""
    limit: WordLimit = DRAFT_LIMIT

    def add(self, feature: Feature) -> None:
        """Add the values of one more example."""
        self.examples += 1
        count = feature.count
        self.values += count
        self.fewest = count if self.fewest is None else min(self.fewest, count)
        self.most = max(self.most, count)
        if feature.kind is Kind.BYTES:
            for value in feature.values:
                self._add_bytes(value)
        elif feature.kind is Kind.INT64:
            self._widen(feature.values)
        else:
            finite = [value for value in feature.values if isfinite(value)]
            self._widen(finite)
            if len(finite) < count:
                nan = sum(map(isnan, feature.values))
                self.nan += nan
                self.infinite += count - len(finite) - nan

    def merge(self, other: KindSummary) -> None:
        """Add the values of another part."""
        self.examples += other.examples
        self.values += other.values
        if other.fewest is not None:
            self.fewest = other.fewest if self.fewest is None else min(self.fewest, other.fewest)
        self.most = max(self.most, other.most)
        self._widen([each for each in (other.low, other.high) if each is not None])
        self.nan += other.nan
        self.infinite += other.infinite
        self.largest = max(self.largest, other.largest)
        self.images.update(other.images)
        self._add_words(other.words)

    def _widen(self, numbers: Sequence[float]) -> None:
        if numbers:
            low, high = min(numbers), max(numbers)
            self.low = low if self.low is None else min(self.low, low)
            self.high = high if self.high is None else max(self.high, high)

    def _add_bytes(self, value: bytes) -> None:
        self.largest = max(self.largest, len(value))
        image_format = sniff(value)
        if image_format:
            self.images[image_format] += 1
        if self.words is None:
            return
        if read_tensor(value) is not None:  # it may also be UTF-8
            self.words = None
            return
        try:
            self._add_words(None if len(value) > self.limit.size else {value.decode("utf-8")})
        except UnicodeDecodeError:
            self.words = None

    def _add_words(self, words: set[str] | None) -> None:
        if self.words is None or words is None or len(self.words | words) > self.limit.words:
            self.words = None
        else:
            self.words |= words


@dataclass(slots=True)
class SeenFeature:
    """The values of one feature. It is small, and can be merged in any order."""

    limit: WordLimit = DRAFT_LIMIT
    kinds: dict[Kind, KindSummary] = field(default_factory=dict)
    """One summary per kind. There are several if the feature's kind differs between examples."""
    unset: int = 0
    """Number of examples where the feature has no kind."""

    def add(self, feature: Feature) -> None:
        """Add the values of one more example."""
        if feature.kind is Kind.UNSET:
            self.unset += 1
        else:
            self._values(feature.kind).add(feature)

    def merge(self, other: SeenFeature) -> None:
        """Add the values of another part."""
        self.unset += other.unset
        for kind, summary in other.kinds.items():
            self._values(kind).merge(summary)

    def _values(self, kind: Kind) -> KindSummary:
        return self.kinds.setdefault(kind, KindSummary(limit=self.limit))

    @property
    def examples(self) -> int:
        """Number of examples where the feature has a kind."""
        return sum(summary.examples for summary in self.kinds.values())

    def most_frequent(self) -> Kind | None:
        """The most frequent kind. If kinds are equally frequent, the lowest number wins."""
        return min(self.kinds, key=lambda kind: (-self.kinds[kind].examples, kind), default=None)


class SchemaSketch:
    """A small summary of examples, to draft a schema from. Make one per shard, then merge."""

    def __init__(self) -> None:
        self.examples = 0
        self.others = 0
        """Number of records that are not examples."""
        self.empty = 0
        """Number of examples without any feature, as which other messages often parse."""
        self._features: dict[str, SeenFeature] = {}
        self._too_many = False

    @property
    def names(self) -> Collection[str]:
        return self._features.keys()

    def add(self, example: Example | None) -> None:
        """Add one more example, or None for a record that is not an example."""
        if example is None:
            self.others += 1
            return
        self.examples += 1
        self.empty += not example
        for name, feature in example.items():
            summary = self._summary(name)
            if summary is not None:
                summary.add(feature)

    def merge(self, other: SchemaSketch) -> None:
        """Add the examples of another part."""
        self.examples += other.examples
        self.others += other.others
        self.empty += other.empty
        self._too_many |= other._too_many
        for name, theirs in other._features.items():
            summary = self._summary(name)
            if summary is not None:
                summary.merge(theirs)

    def render(
        self,
        dataset: str,
        declared: Mapping[str, DeclaredFeature] | None = None,
        more: Sequence[str] = (),
    ) -> str:
        """The draft, as text for :func:`tfrecreg.core.schema.proto.parse_schema`."""
        lines = list(self._head(dataset))
        for name in sorted(self._features):
            seen, said = self._features[name], (declared or {}).get(name)
            lines += ["", *draft_feature(name, seen, self.examples, said)]
        return "\n".join([*lines, *more]) + "\n"

    def _summary(self, name: str) -> SeenFeature | None:
        summary = self._features.get(name)
        if summary is None:
            if len(self._features) >= _MAX_FEATURES:
                self._too_many = True
                return None
            summary = self._features[name] = SeenFeature()
        return summary

    def _head(self, dataset: str) -> Iterator[str]:
        yield "# proto-file: tensorflow_metadata/proto/v0/schema.proto"
        yield "# proto-message: Schema"
        yield "#"
        yield f"# Drafted from {counted(self.examples, 'example')} of {safe(dataset) or 'no name'}."
        yield "# It describes the data as found: review it, correct it, keep it in git."
        if self.others:
            yield f"# Not a tf.train.Example, so left out: {counted(self.others, 'record')}."
        if self.empty:
            yield f"# Without a single feature: {counted(self.empty, 'example')}."
        if self._too_many:
            yield f"# Left out: all features after the first {_MAX_FEATURES}."


def _agree(declared: DeclaredFeature, summary: SeenFeature) -> bool:
    """Whether the values of a feature have the declared kind, number and range."""
    kind = declared.kind or summary.most_frequent()
    if kind is None or summary.kinds.keys() != {kind}:
        return False
    values = summary.kinds[kind]
    if declared.shape is not None:
        size = prod(declared.shape)
        if (values.fewest, values.most) != (size, size):
            return False
    if (
        declared.classes
        and values.high is not None
        and values.low is not None
        and not (values.low >= -1 and values.high < declared.classes)  # TFDS: -1 is unknown
    ):
        return False
    if declared.is_bool and not (values.low in (None, 0, 1) and values.high in (None, 0, 1)):
        return False
    return not declared.is_image or values.images.total() == values.values


def draft_feature(
    name: str, summary: SeenFeature, examples: int, declared: DeclaredFeature | None = None
) -> Iterator[str]:
    """The lines that declare a feature, comments first."""
    try:
        shown = quoted(name)
    except UnicodeEncodeError:
        yield f"# Left out: `{safe(name)}`, a name that is not UTF-8."
        return
    usual = summary.most_frequent()
    if usual is None:
        where = share_text(summary.unset, examples)
        yield f"# {where}, never with a value, so its type is not known:"
        yield "# declare a type, or make the source leave the feature out"
        yield from block("feature", f"name: {shown}", "lifecycle_stage: PLANNED")
        return
    values = summary.kinds[usual]
    is_required = summary.examples == examples
    if declared is not None and not _agree(declared, summary):
        declared = None
    yield from _comments(summary, usual, examples)
    body = [f"name: {shown}", f"type: {KIND_NAMES[usual]}"]
    if is_required:
        body += block("presence", "min_fraction: 1", "min_count: 1")
    shape = declared.shape if declared is not None and is_required else None
    if declared is not None and declared.pixels is not None and usual is not Kind.BYTES:
        shape = declared.pixels  # numbers have the shape of the image
    if shape is not None and len(shape) > 1:
        body += block("shape", *(f"dim {{ size: {size} }}" for size in shape))
    else:
        body += _length(values, is_required)
    body += _declared_domain(declared, values) or value_domain(name, usual, values)
    if declared is not None and declared.pixels is not None:
        tag = "x".join(map(str, declared.pixels))
        body += block("annotation", f"tag: {quoted(f'pixels:{tag}')}")
    yield from block("feature", *body)


def _declared_domain(declared: DeclaredFeature | None, values: KindSummary) -> list[str]:
    """The lines of the domain that a source declares; empty if it declares none."""
    if declared is None:
        return []
    if declared.classes:
        low = min(0, values.low if values.low is not None else 0)  # TFDS: -1 is an unknown class
        bounds = (f"min: {low:.0f}", f"max: {declared.classes - 1}", "is_categorical: true")
        return block("int_domain", *bounds)
    if declared.is_bool:
        return ["bool_domain {}"]
    if declared.is_image:
        return ["image_domain {}"]
    return ["natural_language_domain {}"] if declared.is_text else []


def _comments(summary: SeenFeature, usual: Kind, examples: int) -> Iterator[str]:
    yield from type_comments(summary, "feature", "examples")
    if summary.examples < examples:
        yield f"# {share_text(summary.examples, examples)}"
    if summary.unset:
        yield f"# {share_text(summary.unset, examples)} without a kind"
    yield from value_comments(summary.kinds[usual], "an example")
    values = summary.kinds[usual]
    for image_format, count in sorted(values.images.items()):
        yield f"# {image_format} in {count} of {counted(values.values, 'value')}"


def type_comments(summary: SeenFeature, what: str, units: str) -> Iterator[str]:
    """The comment about a feature or a list that has values of several types."""
    if len(summary.kinds) > 1:
        types = ", ".join(
            f"{KIND_NAMES[kind]} in {summary.kinds[kind].examples}"
            for kind in sorted(summary.kinds)
        )
        yield f"# found several types, but a {what} can have only one: {types} {units}"


def value_comments(values: KindSummary, unit: str) -> Iterator[str]:
    """The comments about the number of values, and about values that are not finite."""
    if values.fewest != values.most:
        yield f"# {values.fewest} to {counted(values.most, 'value')} in {unit}"
    if not_finite := values.nan + values.infinite:
        yield f"# {not_finite} of {counted(values.values, 'value')} NaN or infinite"


def share_text(number: int, examples: int) -> str:
    """``in 3 of 5 examples``."""
    return f"in {number} of {counted(examples, 'example')}"


def _length(values: KindSummary, is_required: bool) -> list[str]:
    fewest, most = values.fewest or 0, values.most
    if fewest != most or not most:
        return block("value_count", f"min: {min(fewest, 1)}")
    if not is_required:
        return block("value_count", f"min: {fewest}", f"max: {most}")
    return ["shape {}"] if most == 1 else block("shape", *block("dim", f"size: {most}"))


def value_domain(name: str, kind: Kind, values: KindSummary) -> list[str]:
    """The lines of the domain drafted from the values; empty if there is no such domain."""
    if kind is Kind.FLOAT:
        if not values.values or values.nan or values.infinite:
            return []
        return block("float_domain", "disallow_nan: true", "disallow_inf: true")
    if kind is Kind.INT64:
        if values.low is None:
            return []
        if not _is_label(name):
            # Properties that all images share give decoded images a shape before one is read.
            is_side = name.rpartition("/")[2] in _SIDES and values.examples > 1
            if not is_side or values.low != values.high:
                return []
            return block("int_domain", f"min: {values.low}", f"max: {values.high}")
        bounds = (f"min: {values.low}", f"max: {values.high}", "is_categorical: true")
        return block("int_domain", *bounds)
    if values.values and values.images.total() == values.values:
        return ["image_domain {}"]
    if values.words and values.values >= _REPEATS * len(values.words):
        words = (f"value: {quoted(word)}" for word in sorted(values.words))
        classes = ["is_categorical: CATEGORICAL_YES"] if _is_label(name) else []
        return block("string_domain", *words, *classes)
    return []


def _is_label(name: str) -> bool:
    above, _, last = name.rpartition("/")
    last = last.lower()
    if last in ("name", "text"):  # image/class/text next to image/class/label
        return above.rpartition("/")[2].lower() in _LABELS
    return last in _LABELS or last.endswith(("label", "labels"))


def block(name: str, *body: str) -> list[str]:
    """A message in protobuf's text form. Each item of the list is a line."""
    return [f"{name} {{", *(f"  {line}" for line in body), "}"]


def quoted(text: str) -> str:
    """`text` as a string in protobuf's text form. Unprintable characters become octal escapes."""
    shown = []
    for character in text:
        if character in '"\\':
            shown.append(f"\\{character}")
        elif character.isprintable():
            shown.append(character)
        else:
            shown += [f"\\{byte:03o}" for byte in character.encode()]
    return f'"{"".join(shown)}"'

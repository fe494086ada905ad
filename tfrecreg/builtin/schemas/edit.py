"""The smallest change of a schema with which data that break it pass.

The result is a proposal for people: a text to show as a diff. A schema cannot accept everything: if
a feature has two types, one of them is wrong in any schema.

:class:`Violations` summarizes the records that break the schema. The changes that answer them are
made to the protobuf message, which is printed with the comments of its features.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import floor, isfinite, isinf, isnan, nan
from typing import Any

from tfrecreg.core.example.model import Feature as ExampleFeature
from tfrecreg.core.example.model import Kind
from tfrecreg.core.example.values import bytes_feature
from tfrecreg.core.schema.check import KIND_NAMES, Problem, counted
from tfrecreg.core.schema.definition import (
    BoolDomain,
    FloatDomain,
    ImageDomain,
    IntDomain,
    Schema,
    SchemaFeature,
    StringDomain,
)
from tfrecreg.core.schema.domain_check import decimal_number, whole_number
from tfrecreg.core.schema.infer import (
    DRAFT_LIMIT,
    KindSummary,
    SeenFeature,
    WordLimit,
    draft_feature,
)
from tfrecreg.core.schema.proto import canonical_text, parse_schema, schema_message
from tfrecreg.core.values.codes import SCH005, SCH006, SCH007
from tfrecreg.core.values.text import listed, safe

_SHOWN = 5
"""Maximum number of strings that a phrase lists."""

_MAX_STRINGS = 100
"""Maximum number of strings outside a domain to keep; a longer list is not reviewed."""

_LIMIT = WordLimit(_MAX_STRINGS, 256)

_MAX_UNDECLARED = 100
"""Maximum number of undeclared features to keep: their names come from the data."""


@dataclass(slots=True)
class Violations:
    """Summaries of the features with problems. Picklable, mergeable and bounded."""

    summaries: dict[tuple[str, str], SeenFeature] = field(default_factory=dict)
    """The features that have a problem, by code and name. Strings that their list allows, and
    numbers as text that are finite where others are not, are left out."""
    undeclared: int = 0
    """Number of features in it that the schema does not have."""

    def add(
        self, feature: ExampleFeature | None, problem: Problem, declared: SchemaFeature | None
    ) -> None:
        """Add one problem of one example."""
        if feature is None or (declared is None and problem.code is not SCH005):
            return
        code, is_text = problem.code.code, feature.kind is Kind.BYTES
        domain = None if declared is None else declared.domain
        if is_text and code == SCH007.code:
            numbers = ((decimal_number(value) or 0.0, value) for value in feature.values)
            feature = bytes_feature([value for number, value in numbers if not isfinite(number)])
        elif is_text and code == SCH006.code and isinstance(domain, (StringDomain, BoolDomain)):
            feature = bytes_feature(set(feature.values) - domain.allowed)
        summary = self._summary((code, problem.feature))
        if summary is not None:
            summary.add(feature)

    def merge(self, other: Violations) -> None:
        """Merge the result of another part."""
        for key, theirs in other.summaries.items():
            summary = self._summary(key)
            if summary is not None:
                summary.merge(theirs)

    def _summary(self, key: tuple[str, str]) -> SeenFeature | None:
        if key not in self.summaries:
            is_undeclared = key[0] == SCH005.code
            if is_undeclared and self.undeclared >= _MAX_UNDECLARED:
                return None
            self.undeclared += is_undeclared
            self.summaries[key] = SeenFeature(DRAFT_LIMIT if is_undeclared else _LIMIT)
        return self.summaries[key]

    def of(self, code: str, name: str) -> SeenFeature:
        """The summary of one feature with one problem, empty if there is none."""
        return self.summaries.get((code, name)) or SeenFeature()


@dataclass(frozen=True, slots=True)
class SplitFacts:
    """Counts of one split."""

    examples: int
    absent: Mapping[str, int]
    """Number of examples without a feature, by feature."""
    distinct: Mapping[str, int]
    """Number of distinct values, by feature; without features that have too many to count."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One change that answers a finding, or the reason why no change does."""

    code: str
    """Code of the finding."""
    feature: str
    """Feature of the finding; empty if it has none."""
    text: str
    """The change or the reason, as a phrase."""


class _RefusedError(Exception):
    """No change of the schema answers a finding. Its message says why."""


def edit_schema(
    schema: Schema,
    findings: Iterable[tuple[str, str]],
    violations: Violations,
    splits: Iterable[SplitFacts],
) -> tuple[str, list[Answer], list[Answer]]:
    """Change a schema's text so that data which break it pass."""
    wanted = sorted(set(findings))
    editor = _Editor(schema, frozenset(wanted), violations, tuple(splits))
    edits: list[Answer] = []
    refused: list[Answer] = []
    for code, name in wanted:
        try:
            texts = list(editor.answer(code, name))
        except _RefusedError as refusal:
            refused.append(Answer(code, name, str(refusal)))
        else:
            edits += [Answer(code, name, text) for text in texts]
    if not edits:
        return schema.text, edits, refused
    editor.repeat_declarations()
    drafts = "".join(f"{line}\n" for lines in editor.drafts for line in lines)
    editor.message.MergeFrom(schema_message(parse_schema(drafts)))
    text = schema.text.removesuffix("\n")
    return canonical_text(editor.message, f"{text}\n{drafts}"), edits, refused


class _Editor:
    """Changes the message of a schema, one finding after the other."""

    def __init__(
        self,
        schema: Schema,
        findings: frozenset[tuple[str, str]],
        violations: Violations,
        splits: tuple[SplitFacts, ...],
    ) -> None:
        self.message = schema_message(schema)
        self.drafts: list[list[str]] = []
        """Declarations of new features, a list of lines each."""
        self._declared = {feature.name: feature for feature in schema.features}
        self._messages = {feature.name: feature for feature in self.message.feature}
        self._findings = findings
        self._violations = violations
        self._splits = splits
        self._examples = sum(each.examples for each in splits)

    def answer(self, code: str, name: str) -> Iterator[str]:
        """Answer one finding; yields the changes as phrases."""
        if code == "SCH001":
            raise _RefusedError("no schema describes records that are not Examples")
        if code == "SCH009":
            raise _RefusedError("its parts do not fit together: correct the data")
        if code == "SCH010":
            return self._number_of_examples()
        if code == "SCH005":
            return self._new_feature(name)
        answers = {
            "SCH002": self._presence,
            "SCH003": self._type,
            "SCH004": self._length,
            "SCH006": self._domain,
            "SCH007": self._not_finite,
            "SCH008": self._distinct,
        }
        if code not in answers:
            raise _RefusedError("no schema change resolves it")
        if name not in self._declared:
            raise _RefusedError("a sparse feature is declared by hand")
        found = self._violations.of(code, name)
        return answers[code](self._declared[name], self._messages[name], found)

    def repeat_declarations(self) -> None:
        """Change features that are declared again in the same words as the first."""
        for feature in self.message.feature:
            feature.CopyFrom(self._messages[feature.name])

    def _presence(self, declared: SchemaFeature, message: Any, _: SeenFeature) -> Iterator[str]:
        name = declared.name
        if declared.type == "STRUCT":
            raise _RefusedError("no example can hold a STRUCT: remove it, or its presence")
        presence = message.presence
        present = [
            (each.examples - each.absent.get(name, 0), each.examples)
            for each in self._splits
            if each.examples
        ]
        fewest = min(there for there, _ in present)
        fraction = min(there / examples for there, examples in present)
        if presence.min_fraction > fraction:
            lower = floor(fraction * 10000) / 10000
            if presence.min_fraction < 1 and lower:
                presence.min_fraction = lower
                yield f"in at least {lower:.6g} of the examples of a split"
            else:
                presence.ClearField("min_fraction")
                yield "no longer in every example"
        if presence.min_count > fewest:
            if fewest:
                presence.min_count = fewest
                yield f"in at least {counted(fewest, 'example')} of a split"
            else:
                presence.ClearField("min_count")
                yield "not in every split"
        if not presence.ListFields():
            message.ClearField("presence")
        # Answers to these findings replace the shape as well.
        has_other_length = {("SCH003", name), ("SCH004", name)} & self._findings
        if declared.shape is not None and None not in declared.shape and not has_other_length:
            # To TFDV, a shape also says that the feature is in every example.
            values = declared.min_values
            message.value_count.min = message.value_count.max = values
            yield f"{counted(values, 'value')} where it is there, instead of a shape"

    def _type(self, declared: SchemaFeature, message: Any, found: SeenFeature) -> Iterator[str]:
        kinds = found.kinds
        present = sum(each.examples - each.absent.get(declared.name, 0) for each in self._splits)
        if len(kinds) != 1 or found.examples != present:
            types = ", ".join(f"{KIND_NAMES[k]} in {kinds[k].examples}" for k in sorted(kinds))
            raise _RefusedError(
                f"a feature has one type, and in {counted(present, 'example')} it is {types}"
            )
        (kind,) = kinds
        numbers = message.DESCRIPTOR.fields_by_name["type"].enum_type.values_by_name
        message.type = numbers[KIND_NAMES[kind]].number
        yield f"of the type {KIND_NAMES[kind]}"
        domain = message.WhichOneof("domain_info")
        if domain is not None:
            message.ClearField(domain)
            yield f"without its `{domain}`, which was for another type"
        yield from self._length(declared, message, found)

    def _length(self, declared: SchemaFeature, message: Any, found: SeenFeature) -> Iterator[str]:
        fewest = min(values.fewest or 0 for values in found.kinds.values())
        most = max(values.most for values in found.kinds.values())
        if declared.shape is not None:
            if None in declared.shape:
                message.value_count.min = 0
                yield "any number of values instead of a shape"
            elif not fewest == declared.min_values == most:
                low, high = min(declared.min_values, fewest), max(declared.min_values, most)
                message.value_count.min, message.value_count.max = low, high
                yield f"from {low} to {high} values instead of a shape"
            return
        levels = message.value_counts.value_count
        count = levels[0] if levels else message.value_count
        if fewest < count.min:
            count.min = fewest
            yield f"at least {counted(fewest, 'value')}"
        if count.HasField("max") and most > count.max:
            count.max = most
            yield f"at most {counted(most, 'value')}"

    def _new_feature(self, name: str) -> Iterator[str]:
        if name in self._declared:
            raise _RefusedError("it is declared for other environments: add this one by hand")
        found = self._violations.of("SCH005", name)
        if not found.kinds and not found.unset:
            raise _RefusedError("too many features are not in the schema: infer a new draft")
        if len(found.kinds) > 1:
            types = ", ".join(f"{KIND_NAMES[k]} in {v.examples}" for k, v in found.kinds.items())
            raise _RefusedError(f"a feature has one type, and it is {types} examples")
        lines = list(draft_feature(name, found, self._examples))
        if lines[-1] != "}":
            raise _RefusedError("its name is not UTF-8, and cannot be written in a schema")
        self.drafts.append(lines)
        yield "a new feature"

    def _domain(self, declared: SchemaFeature, message: Any, found: SeenFeature) -> Iterator[str]:
        domain = declared.domain
        (values,) = found.kinds.values()  # those of another type have a finding of their own
        if isinstance(domain, StringDomain):
            words = _words(values)
            allowed = self._domain_message(message).value  # another feature may share it
            allowed.extend([word for word in words if word not in allowed])
            shown = listed(words[:_SHOWN]) if len(words) <= _SHOWN else f"{len(words)} strings"
            yield f"{shown} added to its domain"
        elif isinstance(domain, BoolDomain):
            yield from _replace_bool(declared, domain, message, values)
        elif isinstance(domain, ImageDomain):
            message.image_domain.max_image_byte_size = values.largest
            yield f"images of at most {counted(values.largest, 'byte')}"
        elif isinstance(domain, (IntDomain, FloatDomain)):
            yield from _widen_range(domain, self._domain_message(message), values)
        else:
            raise _RefusedError(
                "its values are not in the format that the schema names: correct one of the two"
            )

    def _not_finite(self, _: SchemaFeature, message: Any, found: SeenFeature) -> Iterator[str]:
        (values,) = found.kinds.values()
        numbers = [decimal_number(word.encode()) or 0.0 for word in _words(values)]
        domain = self._domain_message(message)
        if domain is None:
            domain = message.float_domain
        if values.nan or any(map(isnan, numbers)):
            domain.disallow_nan = False
            yield "NaN is allowed"
        if values.infinite or any(map(isinf, numbers)):
            domain.disallow_inf = False
            yield "infinite values are allowed"

    def _distinct(self, declared: SchemaFeature, message: Any, _: SeenFeature) -> Iterator[str]:
        counts = [each.distinct.get(declared.name) for each in self._splits if each.examples]
        known = [count for count in counts if count is not None]
        if len(known) != len(counts):
            raise _RefusedError("it has too many different values to be counted")
        bounds = message.unique_constraints
        if min(known) < bounds.min:
            bounds.min = min(known)
            yield f"at least {counted(min(known), 'different value')}"
        if bounds.HasField("max") and max(known) > bounds.max:
            bounds.max = max(known)
            yield f"at most {counted(max(known), 'different value')}"

    def _number_of_examples(self) -> Iterator[str]:
        examples = self._examples
        bounds = self.message.dataset_constraints
        if examples < bounds.min_examples_count:
            bounds.min_examples_count = examples
            yield f"at least {counted(examples, 'example')}"
        if bounds.HasField("max_examples_count") and examples > bounds.max_examples_count:
            bounds.max_examples_count = examples
            yield f"at most {counted(examples, 'example')}"

    def _domain_message(self, message: Any) -> Any:
        """The domain of a feature, also one that it refers to; None if it has none."""
        which = message.WhichOneof("domain_info")
        if which != "domain":
            return None if which is None else getattr(message, which)
        groups = (self.message.string_domain, self.message.int_domain, self.message.float_domain)
        return next(each for group in groups for each in group if each.name == message.domain)


def _replace_bool(
    declared: SchemaFeature, domain: BoolDomain, message: Any, values: KindSummary
) -> Iterator[str]:
    """Put numbers or strings in the place of a bool domain."""
    if declared.type != "BYTES":
        low, high = min(0, values.low or 0), max(1, values.high or 1)
        numbers = message.int_domain if declared.type == "INT" else message.float_domain
        numbers.min, numbers.max = low, high
        yield f"numbers from {_number_text(low)} to {_number_text(high)} in place of a bool"
        return
    given = [name for name in (domain.true_value, domain.false_value) if name is not None]
    words = given + _words(values)
    message.string_domain.value.extend(words)
    shown = ", ".join(f"`{safe(word)}`" for word in words[:_SHOWN])
    yield f"one of {shown}{' …' if len(words) > _SHOWN else ''} in place of a bool"


def _widen_range(
    domain: IntDomain | FloatDomain, message: Any, values: KindSummary
) -> Iterator[str]:
    low, high = values.low, values.high
    if low is None or high is None:  # numbers as text
        read = whole_number if isinstance(domain, IntDomain) else decimal_number
        numbers = [read(word.encode()) for word in _words(values)]
        known = [number for number in numbers if number is not None]
        if len(known) < len(numbers):
            hint = "correct the data, or remove the domain"
            raise _RefusedError(f"a value of it is not a number: {hint}")
        low, high = min(known, default=nan), max(known, default=nan)
    too_low = domain.min is not None and low < domain.min
    too_high = domain.max is not None and high > domain.max
    if not too_low and not too_high:
        raise _RefusedError(
            "a number that is not finite is outside its bounds: remove them by hand"
        )
    if too_low:
        message.min = min(low, message.min)  # another feature may share the domain
        yield f"numbers from {_number_text(low)}"
    if too_high:
        message.max = max(high, message.max)
        yield f"numbers up to {_number_text(high)}"


def _words(values: KindSummary) -> list[str]:
    if values.words is None:
        raise _RefusedError(
            f"over {_MAX_STRINGS} strings are outside its domain, or ones that are long or not "
            "UTF-8: correct the data, or widen it by hand"
        )
    return sorted(values.words)


def _number_text(number: float) -> str:
    return str(number) if isinstance(number, int) else f"{number:.9g}"

"""Proposes the smallest schema change that accepts data which break the schema.

:class:`Violations` summarizes the records that break the schema. The changes are made to the
protobuf message, which is then printed with the comments of its features.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import floor
from typing import Any

from tfrecreg.builtin.schemas.records import SchemaPart
from tfrecreg.core.check.scan.tally import Problem
from tfrecreg.core.example.model import Feature as ExampleFeature
from tfrecreg.core.example.values import bytes_feature
from tfrecreg.core.schema.check import counted
from tfrecreg.core.schema.definition import (
    FloatDomain,
    IntDomain,
    Schema,
    SchemaFeature,
    StringDomain,
)
from tfrecreg.core.schema.infer import (
    DRAFT_LIMIT,
    KindSummary,
    SeenFeature,
    WordLimit,
    draft_feature,
)
from tfrecreg.core.schema.proto import canonical_text, parse_schema, schema_message
from tfrecreg.core.values.codes import SCH005, SCH006
from tfrecreg.core.values.text import listed

_SHOWN = 5
"""Maximum number of strings that a phrase lists."""
_MAX_STRINGS = 100
"""Maximum number of kept strings outside a domain. Nobody would review a longer list."""
_LIMIT = WordLimit(_MAX_STRINGS, 256)
_BY_HAND = "no change is proposed: correct the data, or edit the schema"
"""The default reason for proposing no schema change."""
_MAX_SUMMARIES = 10_000
"""Maximum number of summaries. Data may have any number of undeclared features."""


@dataclass(slots=True)
class Violations:
    """Summaries of the features with problems. Picklable, mergeable and bounded."""

    summaries: dict[tuple[str, str], SeenFeature] = field(default_factory=dict)
    """A summary per code and feature with a problem. It leaves out allowed strings."""

    def add(
        self, feature: ExampleFeature | None, problem: Problem, declared: SchemaFeature | None
    ) -> None:
        """Add one problem of one example."""
        if feature is None or (declared is None and problem.code is not SCH005):
            return
        code, domain = problem.code.code, None if declared is None else declared.domain
        if code == SCH006.code and isinstance(domain, StringDomain):
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
            if len(self.summaries) >= _MAX_SUMMARIES:
                return None
            self.summaries[key] = SeenFeature(DRAFT_LIMIT if key[0] == SCH005.code else _LIMIT)
        return self.summaries[key]

    def of(self, code: str, name: str) -> SeenFeature:
        """The summary of a feature with this problem; empty if it does not have the problem."""
        return self.summaries.get((code, name)) or SeenFeature()


@dataclass(frozen=True, slots=True)
class Answer:
    """One change that resolves a finding, or the reason why no change does."""

    code: str
    feature: str
    """Name of the feature; empty if the finding is about no feature."""
    text: str
    """The change or the reason, as a phrase."""


class _RefusedError(Exception):
    """No schema change resolves a finding. The message has the reason."""


def edit_schema(
    schema: Schema,
    findings: Iterable[tuple[str, str]],
    violations: Violations,
    splits: Iterable[SchemaPart],
) -> tuple[str, list[Answer], list[Answer]]:
    """Change a schema's text so that it accepts data which break it."""
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
    drafts = "".join(f"{line}\n" for lines in editor.drafts for line in lines)
    editor.message.MergeFrom(schema_message(parse_schema(drafts)))
    text = schema.text.removesuffix("\n")
    return canonical_text(editor.message, f"{text}\n{drafts}"), edits, refused


class _Editor:
    """Edits a schema as a protobuf message, and resolves one finding at a time."""

    def __init__(
        self,
        schema: Schema,
        findings: frozenset[tuple[str, str]],
        violations: Violations,
        splits: tuple[SchemaPart, ...],
    ) -> None:
        self.message = schema_message(schema)
        self.drafts: list[list[str]] = []
        """Declarations of new features, each as a list of lines."""
        self._declared = {feature.name: feature for feature in schema.features}
        self._messages = {feature.name: feature for feature in self.message.feature}
        self._findings = findings
        self._violations = violations
        self._splits = splits
        self._examples = sum(each.examples for each in splits)

    def answer(self, code: str, name: str) -> Iterator[str]:
        """Resolve one finding; yields the changes as phrases."""
        if code == "SCH005":
            return self._new_feature(name)
        answers = {
            "SCH002": self._presence,
            "SCH004": self._length,
            "SCH006": self._domain,
            "SCH007": self._not_finite,
        }
        if code not in answers or name not in self._declared:
            raise _RefusedError(_BY_HAND)
        found = self._violations.of(code, name)
        return answers[code](self._declared[name], self._messages[name], found)

    def _presence(self, declared: SchemaFeature, message: Any, _: SeenFeature) -> Iterator[str]:
        name = declared.name
        if declared.type == "STRUCT":
            raise _RefusedError(_BY_HAND)
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
        # The change for SCH004 also replaces the shape.
        has_other_length = ("SCH004", name) in self._findings
        if declared.shape is not None and None not in declared.shape and not has_other_length:
            # For TFDV, a shape also requires the feature in every example.
            values = declared.min_values
            message.value_count.min = message.value_count.max = values
            yield f"{counted(values, 'value')} if it is present, instead of a shape"

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
        found = self._violations.of("SCH005", name)
        is_known = len(found.kinds) == 1 or (found.unset and not found.kinds)
        lines = list(draft_feature(name, found, self._examples)) if is_known else []
        if name in self._declared or lines[-1:] != ["}"]:
            raise _RefusedError(_BY_HAND)
        self.drafts.append(lines)
        yield "a new feature"

    def _domain(self, declared: SchemaFeature, message: Any, found: SeenFeature) -> Iterator[str]:
        domain = declared.domain
        (values,) = found.kinds.values()  # values of another type have their own finding
        if isinstance(domain, StringDomain):
            words = _words(values)
            allowed = self._domain_message(message).value  # another feature may share it
            allowed.extend([word for word in words if word not in allowed])
            shown = listed(words[:_SHOWN]) if len(words) <= _SHOWN else f"{len(words)} strings"
            yield f"{shown} added to its domain"
        elif isinstance(domain, (IntDomain, FloatDomain)):
            yield from _widen_range(domain, self._domain_message(message), values)
        else:
            raise _RefusedError(_BY_HAND)

    def _not_finite(self, _: SchemaFeature, message: Any, found: SeenFeature) -> Iterator[str]:
        (values,) = found.kinds.values()
        if not values.nan and not values.infinite:  # numbers as text
            raise _RefusedError(_BY_HAND)
        domain = self._domain_message(message)
        if domain is None:
            domain = message.float_domain
        if values.nan:
            domain.disallow_nan = False
            yield "NaN is allowed"
        if values.infinite:
            domain.disallow_inf = False
            yield "infinite values are allowed"

    def _domain_message(self, message: Any) -> Any:
        """The domain of a feature: its own, or the domain that it names. None without a domain."""
        which = message.WhichOneof("domain_info")
        if which != "domain":
            return None if which is None else getattr(message, which)
        groups = (self.message.string_domain, self.message.int_domain, self.message.float_domain)
        return next(each for group in groups for each in group if each.name == message.domain)


def _widen_range(
    domain: IntDomain | FloatDomain, message: Any, values: KindSummary
) -> Iterator[str]:
    low, high = values.low, values.high  # None for numbers as text, and without a finite number
    below = low is not None and domain.min is not None and low < domain.min
    above = high is not None and domain.max is not None and high > domain.max
    if not below and not above:
        raise _RefusedError(_BY_HAND)
    if low is not None and below:
        message.min = min(low, message.min)  # another feature may share the domain
        yield f"numbers from {_number_text(low)}"
    if high is not None and above:
        message.max = max(high, message.max)
        yield f"numbers up to {_number_text(high)}"


def _words(values: KindSummary) -> list[str]:
    if values.words is None:
        raise _RefusedError(
            f"more than {_MAX_STRINGS} strings are outside its domain, or some are too long or not "
            "UTF-8"
        )
    return sorted(values.words)


def _number_text(number: float) -> str:
    return str(number) if isinstance(number, int) else f"{number:.9g}"

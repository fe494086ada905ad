"""Proposes how to change a schema so that invalid data become valid. The change is as small as
possible, and is written on request.

:class:`Violations` summarizes the records that break the schema. The changes are made to the
protobuf message, which is then printed with the comments of its features.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import unified_diff
from functools import partial
from math import floor
from pathlib import Path
from typing import Any

from tfrecreg.builtin.schemas.records import MAX_UNEXPECTED, SchemaPart, SchemaVisitor
from tfrecreg.builtin.schemas.validator import SchemaValidator
from tfrecreg.core.check.infer import read_whole
from tfrecreg.core.check.scan.interface import Shard, Target
from tfrecreg.core.check.scan.tally import Problem
from tfrecreg.core.example.model import Example
from tfrecreg.core.example.model import Feature as ExampleFeature
from tfrecreg.core.example.values import bytes_feature
from tfrecreg.core.records.batch import RecordBatch, StreamEnd
from tfrecreg.core.registry.data import Data, Release, Resolved, expect_schema
from tfrecreg.core.registry.find import find_one, target_of
from tfrecreg.core.registry.registry import RegistryLike, find_registry, open_registry
from tfrecreg.core.schema.check import KIND_NAMES, counted
from tfrecreg.core.schema.compiled import CompiledSchema, SplitSchemas
from tfrecreg.core.schema.definition import (
    FloatDomain,
    ImageDomain,
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
from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.codes import SCH005, SCH006
from tfrecreg.core.values.config import Config
from tfrecreg.core.values.errors import ConflictError, UsageError
from tfrecreg.core.values.findings import Finding, Measure
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.values.text import ShortRepr, listed
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine

_SHOWN = 5
"""Maximum number of strings that a phrase lists."""
_MAX_STRINGS = 100
"""Maximum number of kept strings outside a domain. Nobody would review a longer list."""
_LIMIT = WordLimit(_MAX_STRINGS, 256)
_BY_HAND = "no change is proposed: correct the data, or edit the schema"
"""The default reason for proposing no schema change."""


@dataclass(slots=True)
class Violations:
    """Summaries of the features with problems. Picklable, mergeable and bounded."""

    summaries: dict[tuple[str, str], SeenFeature] = field(default_factory=dict)
    """A summary per code and feature with a problem. It leaves out allowed strings."""
    undeclared: int = 0
    """Number of summaries of undeclared features."""

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
            is_undeclared = key[0] == SCH005.code
            if is_undeclared and self.undeclared == MAX_UNEXPECTED:
                return None
            self.undeclared += is_undeclared
            self.summaries[key] = SeenFeature(DRAFT_LIMIT if is_undeclared else _LIMIT)
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
    """The error for a finding that no schema change can resolve. The message has the reason."""


def edit_schema(
    schema: Schema,
    findings: Iterable[tuple[str, str]],
    violations: Violations,
    splits: Iterable[tuple[CompiledSchema, SchemaPart]],
) -> tuple[str, list[Answer], list[Answer]]:
    """Change the text of a schema so that data with these findings become valid. `splits` has the
    rules and the result of each split.
    """
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
    for each in editor.message.feature:  # a feature may be declared again in the same words
        each.CopyFrom(editor.messages[each.name])
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
        splits: tuple[tuple[CompiledSchema, SchemaPart], ...],
    ) -> None:
        self.message = schema_message(schema)
        self.drafts: list[list[str]] = []
        """Declarations of new features, each as a list of lines."""
        self._declared = {feature.name: feature for feature in schema.features}
        self.messages = {feature.name: feature for feature in self.message.feature}
        self._findings = findings
        self._violations = violations
        self._splits = splits
        self._examples = sum(part.examples for _, part in splits)

    def answer(self, code: str, name: str) -> Iterator[str]:
        """Resolve one finding; yields the changes as phrases."""
        if code == "SCH005":
            return self._new_feature(name)
        answers = {
            "SCH002": self._presence,
            "SCH003": self._type,
            "SCH004": self._length,
            "SCH006": self._domain,
            "SCH007": self._not_finite,
        }
        if code not in answers or name not in self._declared:
            raise _RefusedError(_BY_HAND)
        found = self._violations.of(code, name)
        return answers[code](self._declared[name], self.messages[name], found)

    def _present(self, name: str) -> list[tuple[int, int]]:
        """For each split whose environment has the feature: the number of Examples that have this
        feature, and of all Examples.
        """
        return [
            (part.examples - part.absent.get(name, 0), part.examples)
            for rules, part in self._splits
            if part.examples and name in rules.by_name
        ]

    def _presence(self, declared: SchemaFeature, message: Any, _: SeenFeature) -> Iterator[str]:
        name = declared.name
        if declared.type == "STRUCT":
            raise _RefusedError(_BY_HAND)
        presence = message.presence
        present = self._present(name)
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
        # The changes for these findings also replace the shape.
        has_other_length = {("SCH003", name), ("SCH004", name)} & self._findings
        if declared.shape is not None and None not in declared.shape and not has_other_length:
            # For TFDV, a shape also requires the feature in every example.
            values = declared.min_values
            message.value_count.min = message.value_count.max = values
            yield f"{counted(values, 'value')} if it is present, instead of a shape"

    def _type(self, declared: SchemaFeature, message: Any, found: SeenFeature) -> Iterator[str]:
        kinds = found.kinds
        present = sum(there for there, _ in self._present(declared.name))
        if len(kinds) != 1 or found.examples != present:
            raise _RefusedError("a feature can have only one type, but the examples have several")
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
        elif isinstance(domain, ImageDomain):
            message.image_domain.max_image_byte_size = values.largest
            yield f"images of at most {counted(values.largest, 'byte')}"
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


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Proposal(ShortRepr):
    """A proposed schema change, after which the schema accepts data that break it now."""

    target: str
    schema: str
    """Path of the schema, for the user."""
    before: str
    after: str
    """Text of the changed schema; equal to `before` if there is nothing to change."""
    edits: tuple[Answer, ...]
    refused: tuple[Answer, ...]
    """The findings that no schema change resolves."""
    storage: Storage
    """The storage that holds the schema at `path`."""
    path: str

    @property
    def diff(self) -> str:
        """The change as a unified diff; empty if nothing changes."""
        before, after = (text.splitlines(keepends=True) for text in (self.before, self.after))
        lines = unified_diff(before, after, f"a/{self.schema}", f"b/{self.schema}")
        return "".join(
            line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
            for line in lines
        )

    @property
    def exit_code(self) -> int:
        """0 if the change resolves every finding, else 1."""
        return 1 if self.refused else 0

    def to_json(self, *, written: bool) -> dict[str, Any]:
        """The document of ``schema accept --json``."""

        def entries(answers: tuple[Answer, ...], key: str) -> list[dict[str, str]]:
            return [{"code": a.code, "feature": a.feature, key: a.text} for a in answers]

        return {
            "target": self.target,
            "schema": self.schema,
            "changes": entries(self.edits, "change"),
            "refused": entries(self.refused, "reason"),
            "diff": self.diff,
            "written": written,
        }


def propose(
    target: str,
    *,
    registry: RegistryLike | None = None,
    features: Sequence[str] = (),
    schema: str | None = None,
    engine: Engine | None = None,
    progress: Progress = SILENT,
) -> Proposal:
    """Check a target against its schema, and propose a schema that resolves the findings of all
    features, or only of the given ones. It keeps the comments of features. Nothing is written.
    """
    found = find_one(target, registry)
    storage, path, where = _place(found, schema)
    # Parse the bytes: text that is not UTF-8 is refused, not written back with replacements.
    before = parse_schema(storage.read(path), where)
    if before.describes_sequences():
        raise UsageError(
            f"`{where}` describes SequenceExamples, but only schemas of Examples can be changed"
        )
    scanned = target_of(found, schema=schema)
    root = registry if registry is not None else find_registry()
    if isinstance(found, Resolved):
        root = found.registry
    config = open_registry(root).config if root is not None else Config()
    collector = _Collector()
    if reason := collector.applies(scanned):
        raise UsageError(f"`{scanned.name}` cannot be checked against `{where}`: {reason}")
    limits = config.gate(scanned.dataset).options_of(collector.name)
    result = read_whole(
        scanned,
        [collector],
        engine or LocalEngine(1),
        progress,
        doing="checking",
        options={collector.name: limits},
    )
    judge = collector.judge
    after, edits, refused = edit_schema(
        before,
        _selected(result.findings, features, scanned.name),
        collector.violations,
        [(judge.schemas.of(split), part) for split, part in judge.splits.items()],
    )
    if after != before.text:
        parse_schema(after, f"the proposed {before.where}")  # never propose an invalid schema
    return Proposal(
        target=scanned.name,
        schema=where,
        before=before.text,
        after=after,
        edits=tuple(edits),
        refused=tuple(refused),
        storage=storage,
        path=path,
    )


def write_proposal(proposal: Proposal) -> None:
    """Write the changed schema over the original. If that is a link, it stays a link."""
    storage = proposal.storage
    if storage.read(proposal.path) != proposal.before.encode("utf-8"):
        raise ConflictError(f"`{proposal.schema}` was changed while the data were read")
    file_of_link = os.path.realpath(storage.local_path(proposal.path))
    with storage.create(os.path.relpath(file_of_link, os.path.realpath(storage.root))) as file:
        file.write(proposal.after.encode("utf-8"))


def _place(found: Data, named: str | None) -> tuple[Storage, str, str]:
    """The storage of the schema to change, the path in this storage, and the path for messages."""
    if named is not None:
        file = Path(os.path.realpath(named))
        storage = LocalStorage(file.parent)
        if storage.stat(file.name) is None:
            raise UsageError(
                f"there is no schema `{named}`",
                hint=f"tfrecreg schema infer TARGET --output {named}",
            )
        return storage, file.name, named
    if not isinstance(found, Resolved):
        raise UsageError(f"`{found.name}` has no schema of its own: name one with --schema")
    if isinstance(found, Release):
        raise UsageError(
            f"`{found.name}` is a release: its schema never changes",
            hint=f"tfrecreg schema accept {found.dataset}",
        )
    expect_schema(found)
    return found.registry.storage, found.schema_path, found.schema_path


def _selected(
    findings: Iterable[Finding], features: Sequence[str], target: str
) -> set[tuple[str, str]]:
    """Code and feature of each finding. If `features` is not empty, findings about other features
    are left out.
    """
    broken = {
        (each.code, (each.locations[0].feature or "") if each.locations else "")
        for each in findings
    }
    for name in features:
        if name not in {feature for _, feature in broken}:
            raise UsageError(
                f"`{name}` of `{target}` has no finding, so there is no change to accept"
            )
    return {(code, name) for code, name in broken if not features or name in features}


class _Visitor(SchemaVisitor):
    """Checks the records of one shard, and summarizes the records that break the schema."""

    def __init__(self, schemas: SplitSchemas, shard: Shard) -> None:
        super().__init__(schemas, shard)
        self._declared = schemas.of(shard.split).by_name
        self._violations = Violations()

    def problem(
        self, batch: RecordBatch, position: int, example: Example, problem: Problem
    ) -> None:
        super().problem(batch, position, example, problem)
        name = problem.feature
        self._violations.add(example.get(name), problem, self._declared.get(name))

    def close(self, end: StreamEnd) -> tuple[SchemaPart, Violations]:  # type: ignore[override]
        return super().close(end), self._violations


class _Collector(SchemaValidator):
    """The schema validator, which also collects the violations."""

    def __init__(self) -> None:
        super().__init__()
        self.violations = Violations()

    def begin(self, target: Target, options: Mapping[str, Any]) -> Callable[[Shard], _Visitor]:
        super().begin(target, options)
        return partial(_Visitor, self.judge.schemas)

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, Any]]
    ) -> Iterator[Finding | Measure]:
        def collected() -> Iterator[tuple[Shard, SchemaPart]]:
            for shard, (part, violations) in parts:
                self.violations.merge(violations)
                yield shard, part

        return super().finish(target, collected())

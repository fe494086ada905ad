"""Changes of a schema that let data pass which break it: proposed, and written on request."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Any

from tfrecreg.builtin.schemas.edit import Answer, SplitFacts, Violations, edit_schema
from tfrecreg.builtin.schemas.records import SchemaPart, SchemaVisitor
from tfrecreg.builtin.schemas.validator import SchemaValidator
from tfrecreg.core.check.infer import read_whole
from tfrecreg.core.check.scan.interface import Shard, Target
from tfrecreg.core.example.model import Example
from tfrecreg.core.records.batch import RecordBatch, StreamEnd
from tfrecreg.core.registry.lookup import Release, Resolved, expect_schema
from tfrecreg.core.registry.registry import RegistryLike, find_registry, open_registry
from tfrecreg.core.registry.shardset.find import Built, find
from tfrecreg.core.registry.shardset.target import find_target
from tfrecreg.core.schema.check import Problem
from tfrecreg.core.schema.compiled import CompiledSchema
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.config import Config
from tfrecreg.core.values.errors import ConflictError, UsageError
from tfrecreg.core.values.findings import Finding, Measure
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.values.text import ShortRepr, did_you_mean, listed, safe
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptOptions:
    """What to accept, with the defaults of the command line."""

    features: tuple[str, ...] = ()
    """Answer the findings of these features only; empty for all."""
    schema: str | None = None
    """Path of a schema to change instead of the target's own."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Proposal(ShortRepr):
    """A change of a schema with which data that break it pass."""

    target: str
    schema: str
    """Path of the schema, for the user."""
    before: str
    after: str
    """Equal to `before` if there is nothing to change."""
    edits: tuple[Answer, ...]
    refused: tuple[Answer, ...]
    """The findings that no change of the schema answers."""
    storage: Storage
    """Holds the schema, under the path `path`."""
    path: str

    @property
    def diff(self) -> str:
        """The change as a unified diff; empty without one."""
        before, after = (text.splitlines(keepends=True) for text in (self.before, self.after))
        lines = unified_diff(before, after, f"a/{self.schema}", f"b/{self.schema}")
        return "".join(
            line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
            for line in lines
        )

    @property
    def exit_code(self) -> int:
        """0 if the change answers every finding, else 1."""
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
    options: AcceptOptions | None = None,
    engine: Engine | None = None,
    progress: Progress = SILENT,
) -> Proposal:
    """Check a target against its schema, and change the schema's text so that the target passes.

    Nothing is written. Comments of features stay.
    """
    options = options or AcceptOptions()
    found = find(target, registry)
    storage, path, where = _place(found, options.schema)
    # From the bytes: text that is not UTF-8 is refused, and not written back with replacements.
    schema = parse_schema(storage.read(path), where)
    if schema.describes_sequences():
        raise UsageError(
            f"`{safe(where)}` describes SequenceExamples, and only schemas of Examples are changed",
            hint="edit it, or draft another: tfrecreg schema infer TARGET",
        )
    scanned = find_target(found, registry=registry, schema=options.schema)
    root = registry if registry is not None else find_registry()
    if isinstance(found, Resolved):
        root = found.registry
    config = open_registry(root).config if root is not None else Config()
    collector = _Collector()
    if reason := collector.applies(scanned):
        raise UsageError(
            f"`{scanned.name}` cannot be checked against `{safe(where)}`: {reason}",
            hint="name a schema of tf.train.Examples",
        )
    limits = config.gate(scanned.dataset).options_of(collector.name)
    result = read_whole(
        scanned,
        [collector],
        engine or LocalEngine(1),
        progress,
        doing="checking",
        otherwise="a schema from incomplete data would refuse the rest",
        options={collector.name: limits},
    )
    after, edits, refused = edit_schema(
        schema,
        _selected(result.findings, options.features, scanned.name),
        collector.violations,
        [
            SplitFacts(
                part.examples,
                part.absent,
                {name: seen.count for name, seen in part.distinct.items() if not seen.is_full},
            )
            for part in collector.judge.splits.values()
        ],
    )
    if after != schema.text:
        parse_schema(after, f"the proposed {schema.where}")  # never propose an invalid schema
    return Proposal(
        target=scanned.name,
        schema=where,
        before=schema.text,
        after=after,
        edits=tuple(edits),
        refused=tuple(refused),
        storage=storage,
        path=path,
    )


def write_proposal(proposal: Proposal) -> None:
    """Write the changed schema over the one that was read."""
    if proposal.storage.read(proposal.path) != proposal.before.encode("utf-8"):
        raise ConflictError(
            f"`{safe(proposal.schema)}` was changed while the data were read",
            hint="look at the change, then accept again",
        )
    with proposal.storage.create(proposal.path) as file:
        file.write(proposal.after.encode("utf-8"))


def _place(found: Built | str, named: str | None) -> tuple[Storage, str, str]:
    """The storage of the schema to change, its path there, and its path for messages."""
    if named is not None:
        file = Path(os.path.abspath(named))  # noqa: PTH100 - links stay, as the user wrote them
        storage = LocalStorage(file.parent)
        if storage.stat(file.name) is None:
            raise UsageError(
                f"there is no schema `{safe(named)}`",
                hint=f"draft one: tfrecreg schema infer TARGET --output {safe(named)}",
            )
        return storage, file.name, named
    if not isinstance(found, Resolved):
        name = safe(found) if isinstance(found, str) else found.name
        hint = "name the one to change: --schema FILE"
        raise UsageError(f"`{name}` has no schema of its own", hint=hint)
    if isinstance(found, Release):
        raise UsageError(
            f"`{found.name}` is a release: its schema never changes",
            hint=f"accept the build: tfrecreg schema accept {found.dataset}; or name a working "
            "schema: --schema FILE",
        )
    expect_schema(found)
    return found.registry.storage, found.schema_path, found.schema_path


def _selected(
    findings: Iterable[Finding], features: tuple[str, ...], target: str
) -> set[tuple[str, str]]:
    """Code and feature of each finding, or only of the named features."""
    broken = {
        (each.code, (each.locations[0].feature or "") if each.locations else "")
        for each in findings
    }
    names = sorted({name for _, name in broken if name})
    for name in features:
        if name not in names:
            raise UsageError(
                f"`{safe(name)}` of `{target}` has no finding{did_you_mean(name, names)}",
                hint=f"available: {listed(names, most=5)}" if names else "it keeps its schema",
            )
    return {(code, name) for code, name in broken if not features or name in features}


class _Visitor(SchemaVisitor):
    """Checks the records of one shard, and summarizes those that break the schema."""

    def __init__(self, schema: CompiledSchema, shard: Shard) -> None:
        super().__init__(schema, shard)
        self._declared = schema.by_name
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

    def visitor_class(self) -> type[SchemaVisitor]:
        return _Visitor

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, Any]]
    ) -> Iterator[Finding | Measure]:
        return super().finish(target, self._collect(parts))

    def _collect(self, parts: Iterable[tuple[Shard, Any]]) -> Iterator[tuple[Shard, SchemaPart]]:
        for shard, (part, violations) in parts:
            self.violations.merge(violations)
            yield shard, part

"""Proposes how a schema must change to accept given data, and writes the change on request."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from functools import partial
from pathlib import Path
from typing import Any

from tfrecreg.builtin.schemas.edit import Answer, Violations, edit_schema
from tfrecreg.builtin.schemas.records import SchemaPart, SchemaVisitor
from tfrecreg.builtin.schemas.validator import SchemaValidator
from tfrecreg.core.check.infer import read_whole
from tfrecreg.core.check.scan.interface import Shard, Target
from tfrecreg.core.check.scan.tally import Problem
from tfrecreg.core.example.model import Example
from tfrecreg.core.records.batch import RecordBatch, StreamEnd
from tfrecreg.core.registry.data import Data, Release, Resolved, expect_schema
from tfrecreg.core.registry.find import find_one, target_of
from tfrecreg.core.registry.registry import RegistryLike, find_registry, open_registry
from tfrecreg.core.schema.compiled import SplitSchemas
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.config import Config
from tfrecreg.core.values.errors import ConflictError, UsageError
from tfrecreg.core.values.findings import Finding, Measure
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.values.text import ShortRepr
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine


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
    after, edits, refused = edit_schema(
        before,
        _selected(result.findings, features, scanned.name),
        collector.violations,
        collector.judge.splits.values(),
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
    """Write the changed schema over the original."""
    if proposal.storage.read(proposal.path) != proposal.before.encode("utf-8"):
        raise ConflictError(f"`{proposal.schema}` was changed while the data were read")
    with proposal.storage.create(proposal.path) as file:
        file.write(proposal.after.encode("utf-8"))


def _place(found: Data, named: str | None) -> tuple[Storage, str, str]:
    """The storage of the schema to change, its path there, and its path for messages."""
    if named is not None:
        file = Path(os.path.abspath(named))  # noqa: PTH100 - links stay, as the user wrote them
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
    """Code and feature of the findings. If `features` is given, it selects the findings."""
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

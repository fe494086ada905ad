"""Turning findings into a reviewed change of the schema: proposed, shown, and written if wanted."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Any

from tfrecreg.config import Config
from tfrecreg.engines import Engine, LocalEngine
from tfrecreg.errors import ConflictError, UsageError
from tfrecreg.example import Example
from tfrecreg.findings import Finding, Measure
from tfrecreg.operations.full_scan import read_whole
from tfrecreg.operations.targets import files_target, find, reference_target
from tfrecreg.progress import SILENT, Progress
from tfrecreg.records import RecordBatch, StreamEnd
from tfrecreg.registry import RegistryLike, Resolved, find_registry, open_registry
from tfrecreg.registry.absence import absent_schema
from tfrecreg.scan import Shard, Target
from tfrecreg.schema import Contract, Problem, Schema, parse_schema
from tfrecreg.schema.accept import Edit, Refusal, SplitFacts, edit_schema
from tfrecreg.schema.needed import Needs
from tfrecreg.storage import LocalStorage, Storage
from tfrecreg.suggest import did_you_mean, listed
from tfrecreg.text import safe
from tfrecreg.validators.schema import SchemaPart, SchemaValidator, SchemaVisitor

__all__ = ["AcceptOptions", "Proposal", "propose", "write_proposal"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptOptions:
    """What to take in. The defaults are those of the command line."""

    features: tuple[str, ...] = ()
    """The findings of these features alone; empty for all."""
    schema: str | None = None
    """Path of the schema to change instead of the target's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A change of a schema that takes in data which break it."""

    target: str
    schema: str
    """Where the schema is."""
    before: str
    after: str
    """Equal to `before` where nothing is to be changed."""
    edits: tuple[Edit, ...]
    refused: tuple[Refusal, ...]
    """What no change of the schema answers."""
    storage: Storage
    """Holds the schema, under the path `path`."""
    path: str

    @property
    def diff(self) -> str:
        """The change as a unified diff; empty where there is none."""
        before, after = (text.splitlines(keepends=True) for text in (self.before, self.after))
        pieces = unified_diff(before, after, f"a/{self.schema}", f"b/{self.schema}")
        marked = (
            each if each.endswith("\n") else f"{each}\n\\ No newline at end of file\n"
            for each in pieces
        )
        return "".join(marked)

    @property
    def exit_code(self) -> int:
        """0 where the schema is the answer to all that was found, else 1."""
        return 1 if self.refused else 0

    def to_json(self, *, written: bool) -> dict[str, Any]:
        """The document of ``schema accept --json``."""

        def entry(each: Edit | Refusal, key: str, text: str) -> dict[str, str]:
            return {"code": each.code, "feature": each.feature, key: text}

        return {
            "target": self.target,
            "schema": self.schema,
            "changes": [entry(each, "change", each.text) for each in self.edits],
            "refused": [entry(each, "reason", each.reason) for each in self.refused],
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
    """Check a target against its schema, and change the schema's text so that it passes.

    Nothing is written. Comments, order and layout of the text stay.

    Args:
        target: a dataset (its build), or with a schema named also a release, paths or globs.
        registry: an open registry or a path in one; None for that of the current folder.
        options: what to take in, and into which schema.
        engine: where to scan; None for this process.
        progress: told how far it is.

    Raises:
        UsageError: there is no such target or schema, it is a release, or a feature that is named
            has no finding.
        SchemaError: the schema does not parse.
        FailureError: a shard could not be read.
    """
    options = options or AcceptOptions()
    found = find(target, registry)
    storage, path, where = _place(found, options.schema)
    # Read as it is: what is not UTF-8 is refused, not written back with marks in its place.
    schema = parse_schema(storage.read(path), where)
    if isinstance(found, Resolved):
        scanned = reference_target(found, schema=options.schema, raw=None)
        config = found.registry.config
    else:
        scanned = files_target([found], schema=options.schema, raw=None)
        root = registry if registry is not None else find_registry()
        config = open_registry(root).config if root is not None else Config()
    collector = _Collector()
    if reason := collector.applies(scanned):
        raise UsageError(
            f"`{scanned.name}` cannot be held against `{safe(where)}`: {reason}",
            hint="a schema of tf.train.Examples takes in records that are such",
        )
    limits = config.gate(scanned.dataset).limits.of(collector.name)
    result = read_whole(
        scanned,
        [collector],
        engine or LocalEngine(1),
        progress,
        doing="checking",
        otherwise="a schema that takes in a part would refuse the rest",
        options={collector.name: limits},
    )
    return _proposal(scanned, schema, result.findings, collector, options, storage, path)


def write_proposal(proposal: Proposal) -> None:
    """Write the changed schema in the place of the one that was looked at.

    Raises:
        ConflictError: the schema was changed in the meantime.
        StorageError: it cannot be written.
    """
    if proposal.storage.read(proposal.path) != proposal.before.encode("utf-8"):
        raise ConflictError(
            f"`{safe(proposal.schema)}` was changed while the data were read",
            hint="look at the change, then accept again",
        )
    with proposal.storage.create(proposal.path) as file:
        file.write(proposal.after.encode("utf-8"))


def _place(found: Resolved | str, named: str | None) -> tuple[Storage, str, str]:
    """The storage that holds the schema to change, its path there, and what to call it."""
    if named is not None:
        file = Path(os.path.abspath(named))  # noqa: PTH100 - links stay, as the user wrote them
        storage = LocalStorage(file.parent)
        if storage.stat(file.name) is None:
            raise UsageError(
                f"there is no schema `{safe(named)}`",
                hint=f"draft one: tfrecreg schema infer TARGET --output {safe(named)}",
            )
        return storage, file.name, named
    if isinstance(found, str):
        hint = "name the one to change: --schema FILE"
        raise UsageError(f"`{safe(found)}` has no schema of its own", hint=hint)
    if found.version is not None:
        raise UsageError(
            f"`{found.name}` is a release: its schema never changes",
            hint=f"accept the build: tfrecreg schema accept {found.dataset}; or name a working "
            "schema: --schema FILE",
        )
    if found.schema is None:
        raise absent_schema(found.registry, found.dataset)
    return found.registry.storage, found.schema_path, found.schema_path


def _proposal(
    target: Target,
    schema: Schema,
    findings: Sequence[Finding],
    collector: _Collector,
    options: AcceptOptions,
    storage: Storage,
    path: str,
) -> Proposal:
    broken = {(each.code, _feature(each)) for each in findings}
    names = sorted({name for _, name in broken if name})
    for name in options.features:
        if name not in names:
            there = f"there is {listed(names[:5])}" if names else "it keeps its schema"
            raise UsageError(
                f"`{safe(name)}` of `{target.name}` has no finding{did_you_mean(name, names)}",
                hint=there,
            )
    if options.features:
        broken = {(code, name) for code, name in broken if name in options.features}
    facts = [
        SplitFacts(
            part.examples,
            part.absent,
            {name: seen.count for name, seen in part.distinct.items() if not seen.is_full},
        )
        for part in collector.splits.values()
    ]
    after, edits, refused = edit_schema(schema, broken, collector.needed, facts)
    if after != schema.text:
        parse_schema(after, f"the proposed {schema.where}")  # what was written has to be a schema
    return Proposal(
        target=target.name,
        schema=schema.where,
        before=schema.text,
        after=after,
        edits=tuple(edits),
        refused=tuple(refused),
        storage=storage,
        path=path,
    )


def _feature(finding: Finding) -> str:
    return (finding.locations[0].feature or "") if finding.locations else ""


class _Visitor(SchemaVisitor):
    """Checks the records of one shard, and keeps what a schema would have to allow."""

    def __init__(self, contract: Contract, shard: Shard) -> None:
        super().__init__(contract, shard)
        self._rules = {rule.name: rule for rule in contract.features}
        self._needed = Needs()

    def problem(
        self, batch: RecordBatch, position: int, example: Example, problem: Problem
    ) -> None:
        super().problem(batch, position, example, problem)
        name = problem.feature
        self._needed.see(example.get(name), problem, self._rules.get(name))

    def close(self, end: StreamEnd) -> tuple[SchemaPart, Needs]:  # type: ignore[override]
        return super().close(end), self._needed


class _Collector(SchemaValidator):
    """The validator, and what it takes to change the schema."""

    def __init__(self) -> None:
        super().__init__()
        self.needed = Needs()
        self._visitor = _Visitor

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, Any]]
    ) -> Iterator[Finding | Measure]:
        return super().finish(target, self._taken(parts))

    def _taken(self, parts: Iterable[tuple[Shard, Any]]) -> Iterator[tuple[Shard, SchemaPart]]:
        for shard, (part, needed) in parts:
            self.needed.merge(needed)
            yield shard, part

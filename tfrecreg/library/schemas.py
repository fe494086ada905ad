"""The verbs of the schema of a dataset, a build or a release: infer, accept, compare."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from tfrecreg.library.context import (
    FailOnWord,
    PathLike,
    Words,
    Working,
    path_or_none,
    tuple_of,
    verb,
    work_of,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tfrecreg.builtin.schemas.accept import Proposal
    from tfrecreg.builtin.schemas.compare import CompatibilityReport, SchemaDiff
    from tfrecreg.core.registry.registry import Registry


class _Named(Protocol):
    """A handle with a name and a registry, such as a dataset."""

    @property
    def name(self) -> str: ...

    @property
    def registry(self) -> Registry: ...


class SchemaVerbs:
    """The verbs of a schema: of a dataset's working schema, or of a version's schema."""

    @verb
    def infer_schema(self: _Named, **context: Unpack[Working]) -> str:
        """Draft a schema that accepts all records of the target. Review the draft.

        Raises:
            UsageError: there are no records, or no Examples with a feature.
            RefusedError: some records are damaged.
            FailureError: a shard cannot be read.

        Example:
            >>> draft = reg["mnist"].infer_schema()
            >>> 'name: "image/encoded"' in draft
            True
        """
        from tfrecreg.core.check.infer import infer_schema, passed_over
        from tfrecreg.core.registry.find import find_target
        from tfrecreg.core.workers.context import Travelling
        from tfrecreg.core.workers.local import LocalEngine

        target = find_target(self.name, registry=self.registry)
        told = Travelling(**work_of(context))
        engine = told.engine or LocalEngine(1)
        draft, damage = infer_schema(target, engine, told.progress)
        if damage:
            raise passed_over(target.name, damage)
        return draft

    @verb
    def accept_schema(
        self: _Named,
        *,
        features: Words = (),
        schema: PathLike | None = None,
        write: bool = False,
        **context: Unpack[Working],
    ) -> Proposal:
        """Propose the smallest change that makes the schema accept the data.

        Args:
            features: resolve only the findings of these features.
            schema: change this schema instead of the target's own.
            write: write the change; by default only show it.

        Raises:
            UsageError: the target is a release or has no schema, or a feature has no finding.
            ConflictError: the schema changed while the data were read.
            FailureError: a shard cannot be read.

        Example:
            >>> reg["mnist"].accept_schema().edits  # the data pass already
            ()
        """
        from tfrecreg.builtin.schemas.accept import propose, write_proposal

        proposal = propose(
            self.name,
            registry=self.registry,
            features=tuple_of(features),
            schema=path_or_none(schema),
            **work_of(context),
        )
        if write and proposal.before != proposal.after:
            write_proposal(proposal)
        return proposal

    def diff_schema(self: _Named, other: str | os.PathLike[str] | _Named) -> SchemaDiff:
        """Compare the schema with another schema, feature by feature.

        Args:
            other: the later schema: a dataset, a release, a reference to one, or a file.

        Raises:
            UsageError: there is no such schema.
            SchemaError: one of the schemas does not parse.

        Example:
            >>> reg["mnist@1.0.0"].diff_schema(reg["mnist"]).changes
            ()
        """
        from tfrecreg.builtin.schemas.compare import diff_schemas

        return diff_schemas(self.name, _name(other), registry=self.registry)

    def check_schema(
        self: _Named,
        *,
        mode: Literal[
            "backward",
            "forward",
            "full",
            "backward-transitive",
            "forward-transitive",
            "full-transitive",
        ] = "full",
        against: Sequence[str | os.PathLike[str] | _Named] = (),
        environment: str | None = None,
        fail_on: FailOnWord = "error",
    ) -> CompatibilityReport:
        """Check that readers of one version parse the records of another version.

        Args:
            mode: ``backward`` tests today's reader with yesterday's records, ``forward`` tests
                yesterday's reader with today's records, ``full`` tests both. The suffix
                ``-transitive`` extends the test from the latest release to every release.
            against: compare with these schemas instead of releases.
            environment: compare the schemas in this environment.
            fail_on: fail on findings of this severity or higher.

        Raises:
            UsageError: there is no such schema or mode.
            SchemaError: a schema does not parse, or has no such environment.

        Example:
            >>> reg["mnist"].check_schema(mode="backward").status
            'pass'
        """
        from tfrecreg.builtin.schemas.compare import check_compatibility
        from tfrecreg.core.values.config import FailOn

        return check_compatibility(
            self.name,
            registry=self.registry,
            mode=mode,
            against=tuple(map(_name, (against,) if isinstance(against, str) else against)),
            environment=environment,
            fail_on=FailOn.parse(fail_on),
        )


def _name(schema: str | os.PathLike[str] | _Named) -> str:
    return os.fspath(schema) if isinstance(schema, str | os.PathLike) else schema.name

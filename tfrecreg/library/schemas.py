"""The schema of a dataset, a build or a release, with its verbs: infer, accept, compare."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from tfrecreg.library.display import shown
from tfrecreg.library.targets import FailOnWord, path_or_none

if TYPE_CHECKING:
    from tfrecreg.builtin.schemas.accept import Proposal
    from tfrecreg.builtin.schemas.compare import CompatibilityReport, SchemaDiff
    from tfrecreg.core.registry.registry import Registry
    from tfrecreg.core.values.progress import Progress
    from tfrecreg.core.workers.interface import Engine


class _Named(Protocol):
    """A handle that a reference names."""

    @property
    def name(self) -> str: ...

    @property
    def registry(self) -> Registry: ...


class SchemaVerbs:
    """The verbs of a schema: of the working schema of a dataset, or of that of a version."""

    def infer_schema(
        self: _Named, *, engine: Engine | None = None, progress: Progress | bool = True
    ) -> str:
        """Draft a schema from the records. It accepts all of them: review it.

        Args:
            engine: where to read; None for this process.
            progress: a bar in a notebook or a terminal; False for none, or an object to update.

        Raises:
            UsageError: there are no records, or no Examples with a feature.
            RefusedError: some records are damaged.
            FailureError: a shard cannot be read.

        Example:
            >>> draft = reg["mnist"].infer_schema()
            >>> 'name: "image/encoded"' in draft
            True
        """
        from tfrecreg.core.check.infer import PassedOver, infer_schema, passed_over
        from tfrecreg.core.registry.shardset.target import find_target
        from tfrecreg.core.workers.local import LocalEngine

        target = find_target(self.name, registry=self.registry)
        damage: list[PassedOver] = []
        draft = infer_schema(target, engine or LocalEngine(1), shown(progress), damage=damage)
        if damage:
            raise passed_over(target.name, damage)
        return draft

    def accept_schema(
        self: _Named,
        *,
        features: str | Sequence[str] = (),
        schema: str | os.PathLike[str] | None = None,
        write: bool = False,
        engine: Engine | None = None,
        progress: Progress | bool = True,
    ) -> Proposal:
        """Propose the smallest change of the schema that accepts the data.

        Args:
            features: resolve only the findings of these features.
            schema: change this schema instead of the target's own.
            write: write the change.
            engine: where to read; None for this process.
            progress: a bar in a notebook or a terminal; False for none, or an object to update.

        Raises:
            UsageError: it is a release, has no schema, or a feature has no finding.
            ConflictError: the schema changed while the data were read.
            FailureError: a shard cannot be read.

        Example:
            >>> reg["mnist"].accept_schema().edits  # the data pass already
            ()
        """
        from tfrecreg.builtin.schemas.accept import AcceptOptions, propose, write_proposal

        named = (features,) if isinstance(features, str) else tuple(features)
        options = AcceptOptions(features=named, schema=path_or_none(schema))
        proposal = propose(
            self.name,
            registry=self.registry,
            options=options,
            engine=engine,
            progress=shown(progress),
        )
        if write and proposal.before != proposal.after:
            write_proposal(proposal)
        return proposal

    def diff_schema(self: _Named, other: str | os.PathLike[str] | _Named) -> SchemaDiff:
        """Compare its schema with another one, feature by feature.

        Args:
            other: the later schema: a dataset, a release, a reference to one, or a file.

        Raises:
            UsageError: there is no such schema.
            SchemaError: one of them does not parse.

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
        """Check that readers of one version parse the records of another.

        Args:
            mode: ``backward``: today's reader, yesterday's records. ``forward``: yesterday's
                reader, today's records. ``full``: both. ``-transitive``: against every release,
                not only the latest.
            against: compare with these schemas instead of releases.
            environment: compare the schemas in this environment.
            fail_on: the status is ``fail`` on findings of this severity or higher.

        Raises:
            UsageError: there is no such schema or mode.
            SchemaError: one does not parse, or has no such environment.

        Example:
            >>> reg["mnist"].check_schema(mode="backward").status
            'pass'
        """
        from tfrecreg.builtin.schemas.compare import CompatibilityOptions, check_compatibility
        from tfrecreg.core.schema.compat import parse_mode
        from tfrecreg.core.values.config import FailOn
        from tfrecreg.core.values.errors import UsageError
        from tfrecreg.core.values.text import safe

        try:
            way, transitive = parse_mode(mode)
        except ValueError:
            raise UsageError(
                f"`mode` should be `backward`, `forward` or `full`, found `{safe(mode)}`",
                hint="`full-transitive` compares with every release",
            ) from None
        options = CompatibilityOptions(
            mode=way,
            transitive=transitive,
            against=tuple(map(_name, against)),
            environment=environment,
            fail_on=FailOn.parse(fail_on),
        )
        return check_compatibility(self.name, registry=self.registry, options=options)


def _name(schema: str | os.PathLike[str] | _Named) -> str:
    return os.fspath(schema) if isinstance(schema, str | os.PathLike) else schema.name

"""The `schema` validator: checks every record against the schema."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tfrecreg.core.check.scan.interface import Shard, Target, Validator
from tfrecreg.core.check.scan.tally import JsonCodec, key_from
from tfrecreg.core.schema.payload_kinds import no_schema_fits, target_schema
from tfrecreg.core.values.codes import CodeList
from tfrecreg.core.values.config import EnvironmentOptions
from tfrecreg.core.values.findings import Code, Finding, Measure

if TYPE_CHECKING:
    from tfrecreg.builtin.schemas.records import SchemaJudge, SchemaPart, SchemaVisitor


class SchemaValidator(Validator):
    """Checks the records of a target that has a schema; options: :class:`EnvironmentOptions`."""

    name = "schema"
    Options = EnvironmentOptions
    codes: Sequence[Code] = CodeList("SCH00*", "SCH010")
    judge: SchemaJudge
    """Checks the rules for splits; set by :meth:`begin`."""

    def applies(self, target: Target) -> str | None:
        """The reason why the validator does not apply; None if the target has a schema."""
        if target.schema is None:
            reason = no_schema_fits(target, sequences=True)
            return reason or "no schema: name one with --schema"
        return no_schema_fits(target, sequences=target_schema(target).describes_sequences()) or None

    def begin(self, target: Target, options: Mapping[str, Any]) -> Callable[[Shard], SchemaVisitor]:
        """Compile the schema."""
        # Imported here, because a check of files without a schema only calls `applies`.
        from tfrecreg.builtin.schemas.records import SchemaJudge, SchemaPart, SchemaVisitor
        from tfrecreg.core.schema.compiled import compile_split_schemas

        self.part_codec = JsonCodec(SchemaPart, self.codes)
        if target_schema(target).describes_sequences():
            from tfrecreg.builtin.schemas.sequences import SequenceJudge

            self.judge = judge = SequenceJudge(target_schema(target), options)
            return judge.visitor
        schemas = compile_split_schemas(target_schema(target), options)
        self.judge = SchemaJudge(schemas)
        return partial(SchemaVisitor, schemas)

    def part_key(self, target: Target, options: Mapping[str, Any]) -> str:
        return key_from(target.schema, options=options)

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, SchemaPart]]
    ) -> Iterator[Finding | Measure]:
        return self.judge.finish(target, parts)

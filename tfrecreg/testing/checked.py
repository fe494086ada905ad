"""What a validator finds in a few records, without a registry."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.reports.model import Report
from tfrecreg.core.check.scan.cache import ScanCache
from tfrecreg.core.check.scan.interface import Target, Validator
from tfrecreg.core.check.target import check_target
from tfrecreg.core.plugins.records import ValidatorRecord
from tfrecreg.core.registry.shardset.target import files_targets, find_target
from tfrecreg.core.values.config import Config, GateConfig
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine
from tfrecreg.testing.data import build_examples, write_shard
from tfrecreg.testing.under_test import under_test

GivenRecords = Sequence[Mapping[str, Any]]


def check_validator(
    validator: str | type[Validator],
    records: GivenRecords | str | os.PathLike[str],
    *,
    limits: Mapping[str, Any] | None = None,
    keys: Sequence[str] | None = None,
    labels: Mapping[str, Sequence[str]] | None = None,
    schema: str | None = None,
    engine: Engine | None = None,
) -> Report:
    """Check records by one validator, under its limits. No registry and no gate is needed.

    Args:
        validator: the name of an installed validator, or a class.
        records: examples, as dictionaries from feature name to value; or the path of a shard, of a
            folder, or a glob. With `keys`, `labels` or `schema`, the examples are those of a build,
            which has a manifest; else they are a bare shard.
        limits: its options, as ``limits.NAME`` of a gate has them.
        keys: the key of each record.
        labels: class names in order of their numbers, by feature.
        schema: the text of a schema, in place of the inferred one.
        engine: where to scan; None for this process.

    Returns:
        the report: its `findings`, `measures`, `status`, and `errors` if the validator failed.

    Raises:
        UsageError: an option is unknown or has another type, or the records cannot be written.
        PluginError: the validator is not installed, or cannot be loaded.
    """
    with tempfile.TemporaryDirectory(prefix="tfrecreg-kit-") as folder:
        if isinstance(records, str | os.PathLike):
            (target,) = files_targets([os.fspath(records)])
        elif keys is None and labels is None and schema is None:
            shard = Path(folder) / "records.tfrecord"
            write_shard(shard, records)
            (target,) = files_targets([str(shard)])
        else:
            built = build_examples(
                Path(folder) / "registry",
                {"train": records},
                keys=None if keys is None else {"train": keys},
                labels=labels,
                schema=schema,
            )
            target = find_target(built)
        return checked(target, validator, limits=limits, engine=engine)


def checked(
    target: Target,
    validator: str | type[Validator],
    *,
    limits: Mapping[str, Any] | None = None,
    engine: Engine | None = None,
    cache: ScanCache | None = None,
) -> Report:
    """The report on one target, as :func:`check_validator` returns it."""
    with under_test(ValidatorRecord, validator) as announced:
        gate = GateConfig(limits={announced.name: dict(limits)} if limits else {})
        return check_target(
            target,
            Config(gates={"default": gate}),
            CheckOptions(only=(announced.qualified,), cached=cache is not None),
            engine=engine or LocalEngine(1),
            cache=cache,
        )

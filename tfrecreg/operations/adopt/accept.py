"""Reading the files once, and judging what is found in them by the dataset's gate."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from tfrecreg.engines import Engine
from tfrecreg.errors import FailureError, RefusedError, UsageError
from tfrecreg.findings import Finding
from tfrecreg.gate import FailOn, judge
from tfrecreg.operations.adopt.examine import Examination, Examined, Settings
from tfrecreg.operations.adopt.plan import AdoptPlan
from tfrecreg.operations.adopt.request import KnownSchema
from tfrecreg.progress import Progress
from tfrecreg.registry import Registry
from tfrecreg.scan import ScanResult, Shard, Target, Validator, run_scan
from tfrecreg.text import safe
from tfrecreg.validators.crc import CrcValidator

__all__ = ["examine"]

_PATH = 1000


def examine(
    registry: Registry,
    plan: AdoptPlan,
    settings: Settings,
    known: KnownSchema | None,
    engine: Engine,
    progress: Progress,
) -> tuple[list[tuple[Shard, Examined]], tuple[Finding, ...]]:
    """Read every file once, and refuse what is not as it should be.

    Returns:
        What was seen of each file, in their order; and the findings that the gate accepts.

    Raises:
        UsageError: a record that is too large, or no record at all.
        RefusedError: the gate does not accept what was found.
        FailureError: a file cannot be read.
    """
    judged = known is not None and known.judges
    target = Target(
        name=plan.dataset,
        kind="files",
        dataset=plan.dataset,
        shards=tuple(file.shard for file in plan.files),
        storage=None,
        manifest=None,
        schema=known.text if known is not None and judged else None,
        schema_path=known.path if known is not None else None,
        raw=None,
    )
    examination = Examination(settings, judged)
    validators: list[Validator] = [CrcValidator(), examination]
    gate = registry.config.gate(plan.dataset)
    if judged:
        from tfrecreg.validators.schema import SchemaValidator

        validators.append(SchemaValidator())
    progress.start(f"reading what {plan.dataset} is to be", 0)
    try:
        result = run_scan(
            target,
            validators,
            engine,
            options={each.name: gate.options_of(each.name) for each in validators},
            progress=lambda _, end: progress.advance(
                end.records if end is not None else 0, end.file_bytes if end is not None else 0
            ),
        )
    finally:
        progress.stop()
    _expect_complete(result)
    for _, part in examination.seen:
        if part.problem is not None:
            raise part.problem
    verdict = judge(
        result.findings,
        FailOn.ERROR,
        severity=gate.severity,
        waivers=registry.config.waivers,
        today=datetime.datetime.now(datetime.timezone.utc).date(),
    )
    if verdict.status == "fail":
        raise _refused(plan, verdict.findings)
    if not result.records:
        raise UsageError(
            f"there is no record in the {len(plan.files)} files",
            hint="name files that have some",
        )
    return examination.seen, verdict.findings


def _expect_complete(result: ScanResult) -> None:
    for each in result.unreadable:
        raise FailureError(
            f"`{safe(each.shard, limit=_PATH)}` was not read: {each.reason}",
            hint="nothing was adopted: mend that first",
        )
    for crash in result.crashes:
        where = f" on `{safe(crash.shard, limit=_PATH)}`" if crash.shard else ""
        raise FailureError(
            f"`{crash.validator}` failed{where}: {crash.reason}",
            hint="the files are as they were; leave that validator out, or mend its plugin",
        )


def _refused(plan: AdoptPlan, findings: Sequence[Finding]) -> RefusedError:
    first = findings[0]
    codes = {finding.code for finding in findings}
    hint = "mend the files, or accept what was found by a waiver in `tfrecreg.toml`"
    if "CRC008" in codes:
        hint = "leave out what is no TFRecord"
    elif any(code.startswith("CRC") for code in codes):
        hint = "`tfrecreg salvage FILE.. --output DIR` saves what is undamaged; DIR can be adopted"
    return RefusedError(
        f"the files of `{plan.dataset}` are not adopted: {first.message}",
        hint=hint,
        findings=tuple(findings),
    )

"""The configuration of a registry: a file for each dataset, and one for its gates and waivers.

`datasets/mnist.toml`::

    source = "mnist"
    raw = "raw/mnist"
    owner = "vision-team"
    license = "CC-BY-SA-3.0"
    max_skipped = "0.1%"

`tfrecreg.toml`::

    [gates.default]
    fail_on = "error"
    limits.inflation = { ratio = 1.10, allowance = 512, base = "decoded" }

    [[waivers]]
    code = "IMG003"
    owner = "ada"
    reason = "CMYK images are intended"
    expires = 2027-01-31

An unknown key is an error, and so is a value of another type: otherwise a policy could silently be
ignored.

The gate: from findings to pass or fail. Pure data; today's date is passed in.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date, datetime, timezone
from enum import Enum
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta

from tfrecreg.core.values.documents import read_toml
from tfrecreg.core.values.errors import DatasetConfigError, UsageError
from tfrecreg.core.values.findings import Finding, Severity
from tfrecreg.core.values.text import safe
from tfrecreg.core.values.typed_values import KeyPath, SkipLimit, parse_size, read_table


class FailOn(str, Enum):
    """The lowest severity that fails the gate."""

    ERROR = "error"
    WARNING = "warning"
    NEVER = "never"

    @classmethod
    def parse(cls, value: FailOn | str) -> FailOn:
        """``error``, ``warning`` or ``never``."""
        try:
            return cls(value)
        except ValueError:
            raise UsageError(
                f"`fail_on` should be `error`, `warning` or `never`, found `{safe(str(value))}`",
                hint="`never` reports without judging",
            ) from None

    def fails(self, severity: Severity) -> bool:
        """Whether a finding of `severity` fails. Information never does."""
        return self is not FailOn.NEVER and severity.rank >= Severity(self.value).rank


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiver:
    """An accepted finding: `[[waivers]]` in `tfrecreg.toml`.

    Globs are those of :func:`fnmatch.fnmatchcase`: ``*``, ``?`` and ``[…]``; a literal ``[`` is
    written ``[[]``. If both globs are given, both must match.
    """

    owner: str
    """Person or team responsible for the waiver."""
    reason: str
    expires: date
    """The last day on which it is valid."""
    code: str = "*"
    """Glob over codes: ``IMG*``."""
    fingerprint: str = "*"
    """Glob over fingerprints: ``SRC003:mnist:train:*``."""

    def __post_init__(self) -> None:
        if self.code == "*" and self.fingerprint == "*":
            raise ValueError("a waiver needs a `code` or a `fingerprint` to match")
        for name in ("owner", "reason"):
            if not getattr(self, name).strip():
                raise ValueError(f"a waiver's `{name}` may not be empty")

    def covers(self, finding: Finding) -> bool:
        """Whether it matches `finding`, regardless of its date."""
        return fnmatchcase(finding.code, self.code) and fnmatchcase(
            finding.fingerprint, self.fingerprint
        )


@dataclass(frozen=True, slots=True)
class Lowered:
    """Findings of one code whose severity a gate lowered."""

    code: str
    own: Severity
    """The severity that the validator gave."""
    given: Severity
    findings: int
    """Their number."""

    def to_json(self) -> dict[str, str | int]:
        """As the report's JSON has it."""
        return {"code": self.code, "from": self.own, "to": self.given, "findings": self.findings}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The verdict of a gate on findings."""

    status: Literal["pass", "fail"]
    fail_on: FailOn
    findings: tuple[Finding, ...]
    """The findings without a waiver, in their order, with the severities of the gate."""
    waived: tuple[tuple[Finding, Waiver], ...]
    """The findings with a waiver, each with the first waiver that matches."""
    lapsed: tuple[tuple[Finding, Waiver], ...] = ()
    """Those of `findings` that match an expired waiver, each with the first one. They fail with any
    severity: a finding that was once accepted needs a new decision.
    """
    lowered: tuple[Lowered, ...] = ()
    """Those of `findings` whose severity the gate lowered, by code."""

    @property
    def failing(self) -> tuple[Finding, ...]:
        """The findings that fail the gate."""
        return tuple(found for found in self.findings if self.fail_on.fails(found.severity))


def judge(
    findings: Iterable[Finding],
    fail_on: FailOn,
    *,
    severity: Mapping[str, Severity] | None = None,
    waivers: Sequence[Waiver] = (),
    today: date,
) -> Verdict:
    """Apply a gate's policy."""
    expired = tuple(waiver for waiver in waivers if waiver.expires < today)
    holding = [waiver for waiver in waivers if waiver.expires >= today]
    kept: list[Finding] = []
    waived: list[tuple[Finding, Waiver]] = []
    lapsed: list[tuple[Finding, Waiver]] = []
    lowered: Counter[tuple[str, Severity, Severity]] = Counter()
    for finding in findings:
        given = severity_of(finding.code, finding.severity, severity or {})
        judged = replace(finding, severity=given)
        waiver = next((waiver for waiver in holding if waiver.covers(judged)), None)
        if waiver is not None:
            waived.append((judged, waiver))
            continue
        kept.append(judged)
        if judged.severity.rank < finding.severity.rank:
            lowered[finding.code, finding.severity, judged.severity] += 1
        lapsed += [(judged, waiver) for waiver in expired if waiver.covers(judged)][:1]
    failed = any(fail_on.fails(finding.severity) for finding in kept)
    failed = failed or (bool(lapsed) and fail_on is not FailOn.NEVER)
    return Verdict(
        status="fail" if failed else "pass",
        fail_on=fail_on,
        findings=tuple(kept),
        waived=tuple(waived),
        lapsed=tuple(lapsed),
        lowered=tuple(Lowered(*each, lowered[each]) for each in sorted(lowered)),
    )


def concerns(waiver: Waiver, dataset: str) -> bool:
    """Whether a waiver may cover findings of `dataset`; False only if it certainly does not.

    A fingerprint is ``CODE:dataset:…``: if its first two parts have no wildcard, the second one is
    the dataset.
    """
    code, _, rest = waiver.fingerprint.partition(":")
    named = rest.partition(":")[0]
    return not named or named == dataset or any(sign in code + named for sign in "*?[")


def next_expiry(waivers: Iterable[Waiver], dataset: str, today: date | None = None) -> date | None:
    """The next day on which a waiver of a dataset holds for the last time; None without one."""
    day = today or datetime.now(timezone.utc).date()
    holding = [each.expires for each in waivers if concerns(each, dataset)]
    return min((each for each in holding if each >= day), default=None)


def severity_of(code: str, own: Severity, overrides: Mapping[str, Severity]) -> Severity:
    """The severity that a gate gives to findings of a code: see :func:`judge`."""
    matching = [
        (sum(character.isalnum() for character in glob), given.rank, given)
        for glob, given in overrides.items()
        if fnmatchcase(code, glob)
    ]
    return max(matching, key=lambda match: match[:2])[2] if matching else own


CONFIG_NAME = "tfrecreg.toml"
"""The file's name, in the registry's root."""

_DEFAULT = "default"

T = TypeVar("T")

Positive = Annotated[int, Meta(ge=1)]
_Text = Annotated[str, Meta(min_length=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetConfig:
    """`datasets/<name>.toml`: the defaults of `build <name>`."""

    source: _Text | None = None
    """The source's name, ``mnist``, or ``distribution:name`` if two distributions announce it; or
    ``./sources/yolo.py:Yolo`` for a local one."""
    raw: _Text | None = None
    """Folder of the raw data: absolute, relative to the registry's root, or a URL."""
    schema: _Text | None = None
    """Path of the schema, relative to the root. None: ``schemas/<name>.pbtxt``."""
    options: dict[str, Any] = field(default_factory=dict)
    """The source's options, typed by the source: see :mod:`tfrecreg.core.values.typed_values`."""
    shards: Positive | None = None
    """Number of shards per split. At most one of the four settings for shard sizes is given."""
    shard_size: Annotated[int, parse_size] | None = None
    """Shard size in bytes; written as a number or as ``"256MiB"``."""
    records_per_shard: Positive | None = None
    hosts: Positive | None = None
    """Number of training hosts to plan for."""
    compression: Literal["none", "gzip"] = "none"
    max_skipped: Annotated[SkipLimit, SkipLimit.parse] | None = None
    """Limit on skipped items: ``10`` or ``"0.5%"``. None: the build's own default."""
    max_dropped: Annotated[SkipLimit, SkipLimit.parse] | None = None
    """Limit on dropped objects per split, in the same form."""
    page: bool = False
    """Whether the pipeline has a stage that writes a page of the build."""
    owner: str = ""
    license: str = ""
    """An SPDX identifier, or text. Also read from the key ``licence``."""
    description: str = ""
    citation: str = ""

    def __post_init__(self) -> None:
        names = ("shards", "shard_size", "records_per_shard", "hosts")
        given = [f"`{name}`" for name in names if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"expected one way to size shards, found {' and '.join(given)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class InflationLimit:
    """The limit on the size of the data: ``ratio`` × raw bytes + ``allowance`` × records."""

    ratio: Annotated[float, Meta(gt=0)] = 1.10
    """Bytes of shards per byte of raw data."""
    allowance: Annotated[int, Meta(ge=0)] = 512
    """Bytes per record on top, for keys and labels of tiny records."""
    base: Literal["decoded", "stored"] = "decoded"
    """Raw bytes without whole-file compression, or as stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateConfig:
    """`[gates.<name>]`. Missing keys are taken from `[gates.default]`, table by table."""

    fail_on: FailOn = FailOn.ERROR
    validators: tuple[_Text, ...] | None = None
    """The validators to run; None: all that apply."""
    severity: dict[str, Severity] = field(default_factory=dict)
    """Overrides, by glob over codes. See :func:`tfrecreg.core.values.config.judge`."""
    limits: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Options by validator, as in the file: each validator converts its own. The check refuses
    names that are not validators.
    """
    expect: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Questions in SQL and what their answers should be, by name: options of `questions`."""

    def options_of(self, validator: str) -> dict[str, Any]:
        """The options of one validator; empty if there are none."""
        table = self.limits.get(validator, {})
        if validator == "questions":
            return table | self.expect
        if validator == "inflation":
            return asdict(read_limits(InflationLimit, table, validator))
        return dict(table)


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginsConfig:
    """`[plugins]`: which plugins the registry does without, and which are its own."""

    disable: tuple[_Text, ...] = ()
    """Sources and validators: ``name``, or ``distribution:name``."""
    local: tuple[_Text, ...] = ()
    """Globs of files with local plugins, from the registry's folder: ``checks/*.py``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyConfig:
    """`[policy]`: what holds for all gates and waivers."""

    max_waiver_days: Positive | None = None
    """How many days from now on a waiver may last; None for any number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The configuration of a registry. Without any file it is ``Config()``."""

    datasets: dict[str, DatasetConfig] = field(default_factory=dict)
    """From the files of the datasets."""
    gates: dict[str, GateConfig] = field(default_factory=dict)
    waivers: tuple[Waiver, ...] = ()
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    plugins: PluginsConfig = field(default_factory=PluginsConfig)
    broken: dict[str, DatasetConfigError] = field(default_factory=dict)
    """Datasets whose file cannot be read, which `datasets` lacks, and why."""
    home: str = ""
    """The registry's folder, from which local plugins are found; empty outside of one."""

    def dataset(self, name: str) -> DatasetConfig:
        """The configuration of a dataset; all defaults where it has none."""
        if name in self.broken:
            raise self.broken[name]
        return self.datasets.get(name, DatasetConfig())

    def gate(self, name: str) -> GateConfig:
        """The gate of that name (a dataset's), else the default one, else the built-in one."""
        return self.gates.get(name) or self.gates.get(_DEFAULT) or GateConfig()


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """The content of `tfrecreg.toml`: gates are tables until the default is merged into them."""

    gates: dict[str, dict[str, Any]] = field(default_factory=dict)
    waivers: tuple[Waiver, ...] = ()
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    plugins: PluginsConfig = field(default_factory=PluginsConfig)


def parse_config(text: str | bytes, where: str = CONFIG_NAME) -> Config:
    """Read `tfrecreg.toml`: the gates, waivers and policy."""
    path = KeyPath(where)
    file = read_table(_File, read_toml(text, where), path)
    gates = path / "gates"
    # Read each table unmerged first, so that an error names the table of the key.
    for name, table in file.gates.items():
        _gate(table, gates / name)
    default = file.gates.get(_DEFAULT, {})
    return Config(
        gates={
            name: _gate(_merged(default, table), gates / name) for name, table in file.gates.items()
        },
        waivers=file.waivers,
        policy=file.policy,
        plugins=file.plugins,
    )


def parse_dataset(text: str | bytes, where: str) -> DatasetConfig:
    """Read the file of a dataset."""
    table, path = read_toml(text, where), KeyPath(where)
    if "licence" in table:
        if "license" in table:
            raise (path / "licence").error(
                "is the old name of `license`, and both are given", hint="remove `licence`"
            )
        table = {("license" if key == "licence" else key): table[key] for key in table}
    if isinstance(table.get("raw"), str):
        table["raw"] = os.path.expanduser(table["raw"])  # noqa: PTH111 - never raises
    return read_table(DatasetConfig, table, path)


def read_limits(kind: type[T], options: Mapping[str, Any], validator: str) -> T:
    """Read `limits.<validator>` of a gate.

    Args:
        kind: a frozen dataclass whose annotations are the types of the options.
        options: the table.
        validator: its name.

    Raises:
        ConfigError: an unknown option, or a value of another type.
    """
    path = KeyPath(CONFIG_NAME, "limits", validator)
    hint = f"`tfrecreg plugins show {safe(validator)}` lists the options"
    return read_table(kind, dict(options), path, hint=hint)


def _gate(table: dict[str, Any], path: KeyPath) -> GateConfig:
    gate = read_table(GateConfig, table, path)
    limits = path / "limits" / "inflation"
    read_table(InflationLimit, gate.limits.get("inflation", {}), limits)
    return gate


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """`above` merged over `below`; tables are merged key by key, other values are replaced."""
    joined = dict(below)
    for key, value in above.items():
        under = joined.get(key)
        if isinstance(value, dict) and isinstance(under, dict):
            joined[key] = _merged(under, value)
        else:
            joined[key] = value
    return joined

"""The configuration of a registry: one file per dataset, and one file for gates and waivers.

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

An unknown key and a value of the wrong type are errors. If they were ignored, a policy might have
no effect.

The module also applies gates and waivers to findings: see :func:`judge`.
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
from tfrecreg.core.values.findings import Code, Finding, Severity
from tfrecreg.core.values.typed_values import KeyPath, SkipLimit, parse_size, read_table

Positive = Annotated[int, Meta(ge=1)]
_Text = Annotated[str, Meta(min_length=1, pattern=r"\S")]


class FailOn(str, Enum):
    """The lowest severity with which a finding fails the gate."""

    ERROR = "error"
    WARNING = "warning"
    NEVER = "never"

    @classmethod
    def parse(cls, value: FailOn | str) -> FailOn:
        try:
            return cls(value)
        except ValueError:
            raise UsageError(
                f"`fail_on` should be `error`, `warning` or `never`, found `{value}`"
            ) from None

    def fails(self, severity: Severity) -> bool:
        """Whether findings of `severity` fail the gate. Information never fails it."""
        return self is not FailOn.NEVER and severity.rank >= Severity(self.value).rank


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiver:
    """An accepted finding: `[[waivers]]` in `tfrecreg.toml`.

    Globs are as in :func:`fnmatch.fnmatchcase`: ``*``, ``?`` and ``[…]``. Write ``[[]`` for a
    literal ``[``. If `code` and `fingerprint` are both given, both must match.
    """

    owner: _Text
    """The person or team that is responsible for the waiver."""
    reason: _Text
    expires: date
    """The last day on which the waiver is valid."""
    code: str = "*"
    """A glob for codes, such as ``IMG*``. A space and a glob for details may follow: see
    :func:`is_named`."""
    fingerprint: str = "*"
    """A glob for fingerprints: ``SHD007:mnist:train:*``."""

    def __post_init__(self) -> None:
        if self.code == "*" and self.fingerprint == "*":
            raise ValueError("a waiver needs a `code` or a `fingerprint` to match")

    def covers(self, finding: Finding) -> bool:
        return is_named(finding, self.code) and fnmatchcase(finding.fingerprint, self.fingerprint)


def is_named(found: Finding | Code, pattern: str) -> bool:
    """Whether `pattern` matches `found`. In gates and waivers, a pattern is a glob ``CODE``, or two
    globs ``CODE DETAIL``.

    DETAIL has to match either the finding's message or the detail of every place. If the finding
    has more places than it lists, only its message is compared. A DETAIL never matches a
    :class:`Code`.
    """
    code, space, detail = pattern.partition(" ")
    if not fnmatchcase(found.code, code) or not space:
        return fnmatchcase(found.code, code)
    if isinstance(found, Code):
        return False
    details = [each.detail or "" for each in found.locations]
    is_whole = 0 < found.count == len(details)
    return fnmatchcase(found.message, detail) or (
        is_whole and all(fnmatchcase(each, detail) for each in details)
    )


@dataclass(frozen=True, slots=True)
class Lowered:
    """How many findings of one code have a severity that a gate lowered."""

    code: str
    own: Severity
    """The severity that the validator gave."""
    given: Severity
    findings: int
    """Number of findings of this code whose severity was lowered."""

    def to_json(self) -> dict[str, str | int]:
        return {"code": self.code, "from": self.own, "to": self.given, "findings": self.findings}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    status: Literal["pass", "fail"]
    fail_on: FailOn
    findings: tuple[Finding, ...]
    """The findings without a waiver, in their order, with the severities that the gate gives."""
    waived: tuple[Finding, ...]
    """The findings with a waiver."""
    waivers: tuple[Waiver, ...]
    """The first matching waiver of each finding in `waived`, in the same order."""
    lapsed: tuple[tuple[Finding, Waiver], ...] = ()
    """The `findings` that match an expired waiver, each with the first such waiver. They fail the
    gate whatever their severity is, unless `fail_on` is `never`, because someone has to decide
    about them again.
    """
    lowered: tuple[Lowered, ...] = ()
    """How many of the `findings` have a severity that the gate lowered, by code."""
    notes: tuple[str, ...] = ()
    """Lines for the progress output."""


def judge(
    findings: Iterable[Finding],
    fail_on: FailOn,
    *,
    severity: Mapping[str, Severity] | None = None,
    waivers: Sequence[Waiver] = (),
    today: date,
) -> Verdict:
    expired = tuple(waiver for waiver in waivers if waiver.expires < today)
    holding = [waiver for waiver in waivers if waiver.expires >= today]
    kept: list[Finding] = []
    waived: list[tuple[Finding, Waiver]] = []
    lapsed: list[tuple[Finding, Waiver]] = []
    lowered: Counter[tuple[str, Severity, Severity]] = Counter()
    for finding in findings:
        given = severity_of(finding, severity or {})
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
        waived=tuple(finding for finding, _ in waived),
        waivers=tuple(waiver for _, waiver in waived),
        lapsed=tuple(lapsed),
        lowered=tuple(Lowered(*each, lowered[each]) for each in sorted(lowered)),
    )


def concerns(waiver: Waiver, dataset: str) -> bool:
    """Whether a waiver may cover findings of `dataset`. The result is True in case of doubt. A
    fingerprint is ``CODE:dataset:…``. If its first two parts have no wildcard, the second part is
    the dataset.
    """
    code, _, rest = waiver.fingerprint.partition(":")
    named = rest.partition(":")[0]
    return not named or named == dataset or any(sign in code + named for sign in "*?[")


def next_expiry(waivers: Iterable[Waiver], dataset: str, today: date | None = None) -> date | None:
    """The day on which the first of a dataset's valid waivers expires; None if there is no valid
    waiver.
    """
    day = today or datetime.now(timezone.utc).date()
    holding = [each.expires for each in waivers if concerns(each, dataset)]
    return min((each for each in holding if each >= day), default=None)


def severity_of(found: Finding | Code, overrides: Mapping[str, Severity]) -> Severity:
    """The severity of a finding, or of all findings with a code, after these overrides apply."""
    matching = [
        (sum(character.isalnum() for character in glob), given.rank, given)
        for glob, given in overrides.items()
        if is_named(found, glob)
    ]
    return max(matching)[2] if matching else found.severity


CONFIG_NAME = "tfrecreg.toml"
"""The name of the file with gates and waivers, in the registry's root."""

_DEFAULT = "default"

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetConfig:
    """`datasets/<name>.toml`: the defaults of `build <name>`."""

    source: _Text | None = None
    """The source's name, such as ``mnist``. It is ``distribution:name`` if two distributions
    announce the name. A local source is named like ``./sources/yolo.py:Yolo``.
    """
    raw: _Text | None = None
    """Folder of the raw data: an absolute path, a path relative to the registry, or a URL."""
    schema: _Text | None = None
    """Path of the schema, relative to the registry's root; None for ``schemas/<name>.pbtxt``."""
    options: dict[str, Any] = field(default_factory=dict)
    """The options of the source. The source declares the types of its options: see
    :mod:`tfrecreg.core.values.typed_values`.
    """
    shards: Positive | None = None
    """Number of shards per split. At most one of `shards`, `shard_size`, `records_per_shard` and
    `hosts` may be given.
    """
    shard_size: Annotated[int, parse_size] | None = None
    """Size of a shard in bytes. The file has a number, or a text such as ``"256MiB"``."""
    records_per_shard: Positive | None = None
    hosts: Positive | None = None
    """Number of training hosts to plan for."""
    compression: Literal["none", "gzip"] = "none"
    max_skipped: Annotated[SkipLimit, SkipLimit.parse] | None = None
    """Limit on skipped items: ``10`` or ``"0.5%"``; None for the default of `build`."""
    max_dropped: Annotated[SkipLimit, SkipLimit.parse] | None = None
    """Limit on dropped objects per split, in the form of `max_skipped`."""
    page: bool = False
    """Whether the pipeline has a stage that writes a page of the build."""
    owner: str = ""
    license: str = ""
    """The license of the data: an SPDX identifier, or any text."""
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
    """Additional bytes per record, for keys and labels of tiny records."""
    base: Literal["decoded", "stored"] = "decoded"
    """Which size of the raw data is used: ``stored`` for the files as stored, ``decoded`` for
    the size after decompression of whole files."""


@dataclass(frozen=True, slots=True)
class EnvironmentOptions:
    """The options of a validator that choose an environment of the schema."""

    environment: str | None = None
    """The environment of the data."""
    environments: dict[str, str] = field(default_factory=dict)
    """The environments of splits that need a different one, by split name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateConfig:
    """`[gates.<name>]`: a gate. If one of its tables lacks a key, the value comes from
    `[gates.default]`."""

    fail_on: FailOn = FailOn.ERROR
    validators: tuple[_Text, ...] | None = None
    """The validators to run; None for all that apply."""
    severity: dict[str, Severity] = field(default_factory=dict)
    """New severities. A key is ``CODE`` or ``CODE DETAIL``: see :func:`is_named`."""
    limits: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The options of each validator, with the values from the file. Each validator converts its own
    options. `check` refuses unknown validators.
    """
    expect: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Questions in SQL with their expected answers, by name, for the validator `questions`."""

    def options_of(self, validator: str) -> dict[str, Any]:
        """The options of one validator; empty if it has none."""
        table = self.limits.get(validator, {})
        if validator == "questions":
            return table | self.expect
        if validator == "inflation":
            return asdict(read_limits(InflationLimit, table, validator))
        return dict(table)


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginsConfig:
    """`[plugins]`: the plugins that the registry disables, and its local plugins."""

    disable: tuple[_Text, ...] = ()
    """The disabled sources and validators: ``name``, or ``distribution:name``."""
    local: tuple[_Text, ...] = ()
    """Globs for the files of local plugins, relative to the registry's folder: ``checks/*.py``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyConfig:
    """`[policy]`: rules for all gates and waivers."""

    max_waiver_days: Positive | None = None
    """Maximum number of days from today to the expiry of a waiver; None for no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The configuration of a registry. A registry without files of settings has ``Config()``."""

    datasets: dict[str, DatasetConfig] = field(default_factory=dict)
    """The configuration of each dataset, by name, from the files of the datasets."""
    gates: dict[str, GateConfig] = field(default_factory=dict)
    waivers: tuple[Waiver, ...] = ()
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    plugins: PluginsConfig = field(default_factory=PluginsConfig)
    broken: dict[str, DatasetConfigError] = field(default_factory=dict)
    """For each unreadable file of a dataset, the error, by the name of the dataset. `datasets`
    lacks these datasets.
    """
    home: str = ""
    """The registry's folder, where local plugins are looked up; empty outside a registry."""

    def dataset(self, name: str) -> DatasetConfig:
        """The configuration of a dataset; the defaults if it has none."""
        if name in self.broken:
            raise self.broken[name]
        return self.datasets.get(name, DatasetConfig())

    def gate(self, name: str) -> GateConfig:
        """The gate of the dataset `name`. If the dataset has none, the gate `default` is used; if
        that is missing, the built-in gate.
        """
        return self.gates.get(name) or self.gates.get(_DEFAULT) or GateConfig()


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """The content of `tfrecreg.toml`. Each gate is a table, because values of the default gate are
    added to it later."""

    gates: dict[str, dict[str, Any]] = field(default_factory=dict)
    waivers: tuple[Waiver, ...] = ()
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    plugins: PluginsConfig = field(default_factory=PluginsConfig)


def parse_config(text: str | bytes) -> Config:
    path = KeyPath(CONFIG_NAME)
    file = read_table(_File, read_toml(text, CONFIG_NAME), path)
    gates = path / "gates"
    # Each table is read before tables are merged, so that an error names the table with the key.
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


def _gate(table: dict[str, Any], path: KeyPath) -> GateConfig:
    gate = read_table(GateConfig, table, path)
    limits = path / "limits" / "inflation"
    read_table(InflationLimit, gate.limits.get("inflation", {}), limits)
    return gate


def parse_dataset(text: str | bytes, where: str) -> DatasetConfig:
    table, path = read_toml(text, where), KeyPath(where)
    if isinstance(table.get("raw"), str):
        table["raw"] = os.path.expanduser(table["raw"])  # noqa: PTH111 - never raises
    return read_table(DatasetConfig, table, path)


def read_limits(kind: type[T], options: Mapping[str, Any], validator: str) -> T:
    """Convert the table `limits.<validator>` of a gate to the validator's options."""
    return read_table(kind, dict(options), KeyPath(CONFIG_NAME, "limits", validator))


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two tables, and tables inside them. If both set a key, the value from `above` is
    used.
    """
    joined = dict(below)
    for key, value in above.items():
        under = joined.get(key)
        if isinstance(value, dict) and isinstance(under, dict):
            joined[key] = _merged(under, value)
        else:
            joined[key] = value
    return joined

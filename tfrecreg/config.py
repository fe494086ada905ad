"""`tfrecreg.toml`: the datasets of a registry, its gates and its waivers.

::

    [datasets.mnist]
    source = "mnist"
    raw = "raw/mnist"
    owner = "vision-team"
    max_skipped = "0.1%"

    [gates.default]
    fail_on = "error"
    limits.inflation = { ratio = 1.10, allowance = 512, base = "decoded" }

    [[waivers]]
    code = "IMG003"
    owner = "ada"
    reason = "CMYK pictures are meant"
    expires = 2027-01-31

A key that is not known is an error, and so is a value of another type: a policy that is silently
not applied is worse than none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Literal

from msgspec import Meta

from tfrecreg.amounts import SkipLimit, parse_size
from tfrecreg.errors import ConfigError
from tfrecreg.findings import Severity
from tfrecreg.gating import FailOn, Waiver
from tfrecreg.reference import is_dataset_name
from tfrecreg.suggest import listed
from tfrecreg.tables import Place, read_table, read_toml
from tfrecreg.text import safe

__all__ = [
    "CONFIG_NAME",
    "Config",
    "DatasetConfig",
    "GateConfig",
    "InflationLimit",
    "Limits",
    "parse_config",
    "remember_dataset",
]

CONFIG_NAME = "tfrecreg.toml"
"""The file's name, in the registry's root."""

_DEFAULT = "default"

Positive = Annotated[int, Meta(ge=1)]
Text = Annotated[str, Meta(min_length=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetConfig:
    """`[datasets.<name>]`: what `build <name>` does unless told otherwise."""

    source: Text | None = None
    """The source's name, ``mnist``, or ``distribution:name`` where two announce it."""
    raw: Text | None = None
    """The raw data's folder: absolute, or relative to the registry's root."""
    schema: Text | None = None
    """Path of the schema, relative to the root. None: ``schemas/<name>.pbtxt``."""
    options: dict[str, Any] = field(default_factory=dict)
    """The source's options, typed by the source: see :mod:`tfrecreg.sources.options`."""
    shards: Positive | None = None
    """A split's number of shards. At most one of the four ways to size shards is given."""
    shard_size: int | None = field(default=None, metadata={"parse": parse_size})
    """Bytes a shard; written as a number or as ``"256MiB"``."""
    records_per_shard: Positive | None = None
    hosts: Positive | None = None
    """Training hosts to plan for."""
    compression: Literal["none", "gzip"] = "none"
    max_skipped: SkipLimit | None = field(default=None, metadata={"parse": SkipLimit.parse})
    """How many items may be skipped: ``10`` or ``"0.5%"``. None: the build's own default."""
    owner: str = ""
    licence: str = ""
    description: str = ""
    citation: str = ""

    def __post_init__(self) -> None:
        names = ("shards", "shard_size", "records_per_shard", "hosts")
        given = [f"`{name}`" for name in names if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"expected one way to size shards, found {' and '.join(given)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class InflationLimit:
    """How large the data may be: ``ratio`` × raw bytes + ``allowance`` × records."""

    ratio: Annotated[float, Meta(gt=0)] = 1.10
    allowance: Annotated[int, Meta(ge=0)] = 512
    """Bytes a record."""
    base: Literal["decoded", "stored"] = "decoded"
    """Raw bytes with whole-file compression taken off, or as they lie."""

    def __post_init__(self) -> None:
        if not math.isfinite(self.ratio):
            raise ValueError("expected a finite `ratio`")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """`limits` of a gate: a table for each validator that takes options."""

    inflation: InflationLimit = InflationLimit()
    tables: dict[str, dict[str, Any]] = field(default_factory=dict, metadata={"rest": True})
    """Those of the other validators by name, as they stand: each validator types its own. Who
    runs the validators refuses a name that none of them has."""

    def of(self, validator: str) -> dict[str, Any]:
        """The options for one validator; empty where there are none."""
        if validator == "inflation":
            return asdict(self.inflation)
        return dict(self.tables.get(validator, {}))


@dataclass(frozen=True, slots=True, kw_only=True)
class GateConfig:
    """`[gates.<name>]`. What a gate leaves out comes from `[gates.default]`, table by table."""

    fail_on: FailOn = FailOn.ERROR
    validators: tuple[Text, ...] | None = None
    """The validators to run; None: all that apply."""
    severity: dict[str, Severity] = field(default_factory=dict)
    """Overrides, by glob over codes. See :func:`tfrecreg.gating.judge`."""
    limits: Limits = Limits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All of `tfrecreg.toml`. An empty or missing file is ``Config()``."""

    datasets: dict[str, DatasetConfig] = field(default_factory=dict)
    gates: dict[str, GateConfig] = field(default_factory=dict)
    waivers: tuple[Waiver, ...] = ()

    def gate(self, name: str) -> GateConfig:
        """The gate of that name (a dataset's), else the default one, else the built-in one."""
        return self.gates.get(name) or self.gates.get(_DEFAULT) or GateConfig()


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """The file as it stands: gates are kept as tables until the default is laid under them."""

    datasets: dict[str, DatasetConfig] = field(default_factory=dict)
    gates: dict[str, dict[str, Any]] = field(default_factory=dict)
    waivers: tuple[Waiver, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tables:
    """The file as far as editing needs it to be right."""

    datasets: dict[str, dict[str, Any]] = field(default_factory=dict)
    rest: dict[str, Any] = field(default_factory=dict, metadata={"rest": True})


def parse_config(text: str | bytes, where: str = CONFIG_NAME) -> Config:
    """Read the configuration.

    Args:
        text: the file's content.
        where: what messages call the file.

    Raises:
        ConfigError: no TOML, an unknown key, a missing one, or a value of another type. The
            message has the file, the key's path, and what was expected against what was found.
    """
    place = Place(where)
    file = read_table(_File, read_toml(text, where), place)
    for name in file.datasets:
        if not is_dataset_name(name):
            raise (place / "datasets" / name).error(
                "is no name of a dataset: expected `[a-z][a-z0-9_]*`"
            )
    gates = place / "gates"
    # Each as it stands first, so that a complaint names the table that the key stands in.
    for name, table in file.gates.items():
        read_table(GateConfig, table, gates / name)
    default = file.gates.get(_DEFAULT, {})
    return Config(
        datasets=file.datasets,
        gates={
            name: read_table(GateConfig, _over(default, table), gates / name)
            for name, table in file.gates.items()
        },
        waivers=file.waivers,
    )


def remember_dataset(text: str, name: str, values: Mapping[str, Any]) -> str:
    """The TOML text with `[datasets.<name>]` added or updated; all else, comments too, as it was.

    Args:
        text: the file's content; empty where there is none yet.
        name: the dataset.
        values: keys of :class:`DatasetConfig` as TOML values: strings, numbers, lists, mappings.
            None takes a key out. Keys that are not named stay; so does a value that is equal.
            A mapping replaces what was there: keys of it that are not named go.

    Raises:
        ConfigError: `text` is no TOML, or its layout cannot be updated without other changes.
    """
    from tfrecreg import toml_edit  # tomlkit takes a tenth of a second that reading does not need

    before = read_toml(text, CONFIG_NAME)
    # A file that is wrong already is not written on.
    known = read_table(_Tables, before, Place(CONFIG_NAME)).datasets.get(name)
    wanted = _merged(known or {}, values)
    if known is not None and _exact(wanted) == _exact(known):
        return text
    after = {**before, "datasets": {**before.get("datasets", {}), name: wanted}}
    # No layout is trusted: what was written is read again, and nothing else may have changed.
    with suppress(ValueError, LookupError, TypeError, AttributeError, ConfigError):
        result = (
            toml_edit.appended(text, name, wanted)
            if known is None
            else toml_edit.updated(text, name, values)
        )
        if _exact(read_toml(result, CONFIG_NAME)) == _exact(after):
            return result
    raise ConfigError(
        f"`{CONFIG_NAME}`: `datasets.{safe(name)}` cannot be written without changing more",
        hint=f"put {listed(values)} there by hand",
    )


def _merged(known: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    merged = {key: value for key, value in known.items() if key not in values}
    return merged | {key: value for key, value in values.items() if value is not None}


def _exact(value: Any) -> object:
    """For comparing as TOML does: 1 is neither true nor 1.0, a tuple is an array, nan is nan."""
    if isinstance(value, Mapping):
        return {key: _exact(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_exact(item) for item in value]
    return type(value), repr(value)


def _over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """`above` laid over `below`; tables are joined key by key, all else is replaced."""
    joined = dict(below)
    for key, value in above.items():
        under = joined.get(key)
        if isinstance(value, dict) and isinstance(under, dict):
            joined[key] = _over(under, value)
        else:
            joined[key] = value
    return joined

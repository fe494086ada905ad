"""Chooses the validators that run on a target, and says why the others do not run."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tfrecreg.core.check.reports import SkippedValidator
from tfrecreg.core.check.scan.interface import Running, Target, Validator
from tfrecreg.core.plugins.entry_points import is_local
from tfrecreg.core.plugins.guard import PluginId, calling, is_told, reason_of, traced
from tfrecreg.core.plugins.manager import Announced, Plugins, has_name, plugins
from tfrecreg.core.plugins.records import ValidatorRecord
from tfrecreg.core.values.config import CONFIG_NAME, GateConfig, read_limits
from tfrecreg.core.values.errors import (
    ConfigError,
    MissingExtraError,
    PluginError,
    UnknownPluginError,
    UsageError,
)
from tfrecreg.core.values.text import safe


@dataclass(slots=True)
class Choice:
    """The chosen validators."""

    running: list[Running] = field(default_factory=list)
    """New validators, in order of name."""
    skipped: list[SkippedValidator] = field(default_factory=list)
    """Validators that do not apply."""
    notes: list[str] = field(default_factory=list)
    """Validators that are switched off, one line each, for the reader of the report."""
    problems: list[str] = field(default_factory=list)
    """Reasons why requested validators cannot run, one line each. The check is then incomplete."""


def choose(
    target: Target,
    gate: GateConfig,
    only: Sequence[str],
    skip: Sequence[str],
    also: Sequence[str] = (),
    *,
    known: Plugins | None = None,
) -> Choice:
    """The validators that run on `target`: those that the user names, else those that the gate
    names, else all that apply. If two plugins announce the same name, both validators run.

    If the gate has limits for a missing validator, the check is incomplete, unless the user names
    validators.
    """
    known = known or plugins()
    names = {*known.names(ValidatorRecord), *(each.name for each in known.disabled)}
    unknown = [name for name in gate.limits if name not in names]
    chosen = [each for each in known.every(ValidatorRecord) if each.record.runs_with == "always"]
    named = bool(only) or gate.validators is not None
    if only:
        chosen = _by_name(known, only)
    elif gate.validators is not None:
        chosen = _by_name(known, gate.validators, CONFIG_NAME)
    comparing = [] if target.expected is None else validators_with("expected", known)
    limited = [] if only else validators_with("limits", known)
    limited = [each for each in limited if gate.options_of(each.name)]
    chosen += limited
    chosen += (known.find(ValidatorRecord, name) for name in also)
    if target.baseline is not None and not only:
        chosen += validators_with("baseline", known)
    if target.raw_items is not None:
        chosen += validators_with("items", known)
    chosen += comparing
    chosen = list({each.qualified: each for each in chosen}.values())
    off = [each for each in known.disabled if isinstance(each.record, ValidatorRecord)]
    leave = {name for name in skip if not any(has_name(each, name) for each in off)}
    left_out = {each.qualified for each in _by_name(known, leave.difference(unknown))}
    choice = Choice()
    choice.notes += (f"{each.plugin_id} is disabled by {each.disabled_by}" for each in off)
    if target.expected is not None and not comparing:
        choice.problems.append("no validator compares the records with the expected records")
    if not only:
        choice.problems += (
            f"`limits.{safe(name)}` in `{CONFIG_NAME}` is not judged: no validator `{safe(name)}` "
            f"is installed; hint: install the plugin, or leave it out: --skip {safe(name)}"
            for name in unknown
            if name not in skip
        )
    if not named:
        choice.problems += (
            f"the local plugin `{safe(each.distribution)}` is broken: {each.reason}"
            for each in known.broken
            if is_local(each.distribution)
        )
    for announced in chosen:
        if announced.qualified not in left_out:
            must = named or announced in limited
            _consider(choice, known, announced, target, gate, must=must)
    _judge_other_limits(known, {each.qualified for each in chosen}, gate)
    if not choice.running and not choice.problems:
        choice.problems.append(f"no validator applies to `{target.name}`")
    return choice


def validators_with(
    given: Literal["baseline", "expected", "items", "limits"], known: Plugins
) -> list[Announced[ValidatorRecord]]:
    """The validators that run only if `given` is present. `limits` are part of the gate; everything
    else is part of the target."""
    every = known.every(ValidatorRecord)
    return [each for each in every if each.record.runs_with == given]


def asked_for(
    validators: Iterable[Announced[ValidatorRecord]], only: Sequence[str], skip: Sequence[str]
) -> list[Announced[ValidatorRecord]]:
    """The validators that the user does not exclude."""
    return [
        each
        for each in validators
        if not any(has_name(each, name) for name in skip)
        and (not only or any(has_name(each, name) for name in only))
    ]


def _consider(
    choice: Choice,
    known: Plugins,
    announced: Announced[ValidatorRecord],
    target: Target,
    gate: GateConfig,
    *,
    must: bool,
) -> None:
    """Make the validator, check its limits, ask whether it applies, and record the outcome."""
    plugin = announced.plugin_id
    try:
        kind = known.load(ValidatorRecord, announced.qualified)
    except PluginError as error:
        choice.problems.append(error.message)
        return
    except MissingExtraError as error:
        _not_running(choice, plugin, error, must=must)
        return
    try:
        with calling():
            validator = kind()
            found = getattr(validator, "name", None)
            if found != announced.name:
                raise TypeError(f"its `name` is {found!r}")
        with calling():
            reason: object = validator.applies(target)
            if reason is not None and not (isinstance(reason, str) and reason):
                raise TypeError(f"its `applies` returned {reason!r}, expected None or a reason")
        _judge_limits(announced, kind, gate)
        named = gate.options_of(announced.name).get(getattr(kind, "feature_option", None) or "")
        if target.manifest is not None and named in target.manifest.features:
            reason = None
    except Exception as error:
        _not_running(choice, plugin, error, must=must)
        return
    if reason is None:
        # Bundled validators are not checked here: their tests check their codes.
        codes = None if plugin.is_ours else frozenset(code.code for code in announced.record.codes)
        choice.running.append(Running(validator, plugin, codes))
    else:
        choice.skipped.append(SkippedValidator(announced.name, str(reason)))


def _judge_limits(
    announced: Announced[ValidatorRecord], kind: type[Validator], gate: GateConfig
) -> None:
    """Check the gate's limits for a validator, unless the validator itself does so."""
    plugin, options = announced.plugin_id, gate.options_of(announced.name)
    declared = getattr(kind, "Options", None)
    if declared is not None:
        with calling():
            read_limits(declared, options, announced.name)
    elif plugin.is_ours and options and announced.record.runs_with != "limits":
        raise ConfigError(
            f"`{CONFIG_NAME}`: `limits.{announced.name}.{next(iter(options))}` is unknown: "
            f"the validator `{announced.name}` has no options"
        )


def _judge_other_limits(known: Plugins, chosen: Container[str], gate: GateConfig) -> None:
    """Check the gate's limits for the validators that this check does not run. Any other problem of
    these validators is reported when they run.
    """
    for announced in known.every(ValidatorRecord):
        if announced.name in gate.limits and announced.qualified not in chosen:
            try:
                _judge_limits(announced, known.load(ValidatorRecord, announced.qualified), gate)
            except Exception as error:
                if isinstance(error, ConfigError) and is_told(error):
                    raise


def _not_running(choice: Choice, plugin: PluginId, error: Exception, *, must: bool) -> None:
    """Record why a validator cannot run. If the error is meant for the user, raise it instead."""
    if isinstance(error, MissingExtraError) and is_told(error):
        needs = f"{error.message}: {error.hint}"
        if must:
            choice.problems.append(f"the validator `{plugin.name}`: {needs}")
        else:
            choice.skipped.append(SkippedValidator(plugin.name, needs))
    elif isinstance(error, UsageError) and is_told(error):
        raise error
    else:
        choice.problems.append(f"{plugin} failed: {reason_of(traced(error))}")


def _by_name(
    known: Plugins, names: Iterable[str], where: str = ""
) -> list[Announced[ValidatorRecord]]:
    """The validators with these names, each once, in order. Errors begin with `where`, if given."""
    found = {}
    for name in sorted(names):
        try:
            each = known.find(ValidatorRecord, name)
        except UnknownPluginError as error:
            if not where:
                raise
            raise ConfigError(f"`{where}`: {error.message}", hint=error.hint) from None
        found[each.qualified] = each
    return list(found.values())

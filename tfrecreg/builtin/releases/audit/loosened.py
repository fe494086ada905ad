"""What a change loosens in `tfrecreg.toml`: new waivers, and gates that let more pass.

For a pull request. A change that breaks data and accepts the damage itself passes its own gate, so
reviewers have to know.
"""

from __future__ import annotations

from collections.abc import Iterator

from tfrecreg.core.check.scan.tally import Tally
from tfrecreg.core.plugins.manager import plugins
from tfrecreg.core.values.codes import REG013
from tfrecreg.core.values.config import CONFIG_NAME, Config, GateConfig
from tfrecreg.core.values.findings import Finding, Location, Severity
from tfrecreg.core.values.gating import FailOn, Waiver, severity_of
from tfrecreg.core.values.suggest import listed
from tfrecreg.core.values.text import safe

_STRICT = (FailOn.WARNING, FailOn.ERROR, FailOn.NEVER)
"""The strictest first."""
_DEFAULT = "default"
_SHOWN = 5
"""Maximum number of codes in a message."""


def loosened(before: Config, after: Config) -> list[Finding]:
    """A finding for each thing that `after` accepts and `before` does not.

    A changed limit of a validator always counts: only the validator knows which is looser.
    """
    tally, where = Tally(), Location(shard=CONFIG_NAME)
    for subject, message in (
        *_waivers(before, after),
        *_disabled(before, after),
        *_gates(before, after),
    ):
        tally.add(REG013, message, where, subject=subject)
    return list(tally.findings(""))


def _waivers(before: Config, after: Config) -> Iterator[tuple[str, str]]:
    longest: dict[tuple[str, str], Waiver] = {}
    for each in sorted(before.waivers, key=lambda waiver: waiver.expires):
        longest[each.code, each.fingerprint] = each
    for each in after.waivers:
        what = " ".join(f"`{safe(glob)}`" for glob in (each.code, each.fingerprint) if glob != "*")
        subject = f"waivers.{each.code}.{each.fingerprint}"
        until = f"until {each.expires} ({safe(each.owner)}: {safe(each.reason)})"
        known = longest.get((each.code, each.fingerprint))
        if known is None:
            yield subject, f"a new waiver of {what} {until}"
        elif known.expires < each.expires:
            yield subject, f"the waiver of {what}, until {known.expires}, is extended {until}"
    then, now = before.policy.max_waiver_days, after.policy.max_waiver_days
    if then is not None and (now is None or now > then):
        yield "policy.max_waiver_days", f"`policy.max_waiver_days` was {then}, is {_text(now)}"


def _disabled(before: Config, after: Config) -> Iterator[tuple[str, str]]:
    more = sorted(set(after.plugins.disable) - set(before.plugins.disable))
    if more:
        yield "plugins.disable", f"`plugins.disable` is with {listed(more)}"


def _gates(before: Config, after: Config) -> Iterator[tuple[str, str]]:
    told: set[tuple[str, str]] = set()
    # The default first: changes for all gates are reported once.
    for name in (_DEFAULT, *sorted({*before.gates, *after.gates} - {_DEFAULT})):
        for change in _gate(before.gate(name), after.gate(name)):
            if change not in told:
                told.add(change)
                key, message = change
                yield f"gates.{name}.{key}", f"`gates.{safe(name)}.{safe(key)}`: {message}"


def _gate(before: GateConfig, after: GateConfig) -> Iterator[tuple[str, str]]:
    """The key of each setting that lets more pass, and how."""
    if _STRICT.index(after.fail_on) > _STRICT.index(before.fail_on):
        yield "fail_on", f"was {before.fail_on.value}, is {after.fail_on.value}"
    lowered: dict[tuple[Severity, Severity], list[str]] = {}
    codes = plugins().codes() if before.severity != after.severity else {}
    for name, code in codes.items():
        gates = (before, after)
        then, now = (severity_of(name, code.severity, gate.severity) for gate in gates)
        if now.rank < then.rank:
            lowered.setdefault((then, now), []).append(name)
    for (then, now), names in lowered.items():
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        shown = ", ".join(names[:_SHOWN])
        yield "severity", f"was {then.value}, is {now.value} for {shown}{more}"
    if after.validators is not None:
        if before.validators is None:
            yield "validators", f"was all that apply, is {listed(after.validators)}"
        elif gone := sorted({*before.validators} - {*after.validators}):
            yield "validators", f"is without {listed(gone)}"
    for validator in sorted({*before.limits, *after.limits}):
        limits = [each.limits.get(validator, {}) for each in (before, after)]
        for option in sorted({*limits[0], *limits[1]}):
            was, is_ = (each.get(option) for each in limits)
            if was != is_:
                yield f"limits.{validator}.{option}", f"was {_text(was)}, is {_text(is_)}"
    for name, was in before.expect.items():
        if (now_is := after.expect.get(name)) != was:
            yield f"expect.{name}", "was changed" if now_is is not None else "was removed"


def _text(value: object) -> str:
    return "not set" if value is None else safe(str(value))

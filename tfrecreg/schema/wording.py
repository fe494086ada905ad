"""What a rule asks for, in words: the messages of findings, the same for every record."""

from __future__ import annotations

from tfrecreg.schema.contract import FeatureRule, SparseRule, WeightRule
from tfrecreg.schema.model import BoolDomain, FloatDomain, IntDomain, TimeDomain, ValueCount
from tfrecreg.suggest import listed
from tfrecreg.text import safe

__all__ = ["bounds_text", "counted", "presence_text", "rule_text", "shape_text", "values_text"]

_SHOWN = 5
"""Allowed strings that a message lists; more are only counted."""


def rule_text(rule: FeatureRule | SparseRule | WeightRule, asks: str) -> str:
    """A message: the feature should …"""
    return f"`{safe(rule.name)}` should {asks}"


def counted(number: int, noun: str) -> str:
    """``1 value``, ``3 values``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def presence_text(rule: FeatureRule | SparseRule) -> str:
    """What the rule asks of a whole split."""
    asks = []
    if 0 < rule.min_fraction < 1:
        asks.append(f"in at least {100 * rule.min_fraction:.6g}% of")
    if rule.min_count:
        asks.append(f"in at least {rule.min_count} of")
    return f"be {' and '.join(asks)} the examples of a split"


def bounds_text(bounds: ValueCount, noun: str) -> str:
    """``at least 3 examples``, ``from 3 to 5 examples`` …"""
    low, high = bounds.min, bounds.max
    if high is None:
        return f"at least {counted(low or 0, noun)}"
    if not low:
        return f"at most {counted(high, noun)}"
    return f"exactly {counted(low, noun)}" if low == high else f"from {low} to {high} {noun}s"


def shape_text(rule: FeatureRule) -> str:
    """What the rule asks of the number of values."""
    low, high = rule.min_values, rule.max_values
    if rule.shape is not None:
        if not rule.shape:
            return "have exactly 1 value"
        sizes = " × ".join("?" if size is None else str(size) for size in rule.shape)
        total = f"a multiple of {rule.multiple_of}" if None in rule.shape else str(low)
        return f"have the shape {sizes}, so {total} value{'' if total == '1' else 's'}"
    if high is None:
        return f"have at least {counted(low, 'value')}"
    if low == high:
        return f"have exactly {counted(low, 'value')}"
    return f"have {low} to {high} values" if low else f"have at most {counted(high, 'value')}"


def values_text(rule: FeatureRule) -> str:
    """What the rule asks of the values."""
    asks = _domain_text(rule)
    if rule.min_domain_mass < 1:
        return f"{asks} in at least {100 * rule.min_domain_mass:.6g}% of its values"
    return asks


def _domain_text(rule: FeatureRule) -> str:
    domain = rule.domain
    if isinstance(domain, frozenset):
        if len(domain) > _SHOWN:
            return f"be one of the {len(domain)} strings of its domain"
        names = sorted(value.decode("utf-8", "surrogateescape") for value in domain)
        return f"be one of {listed(names, word='or')}" if names else "have no value at all"
    if isinstance(domain, BoolDomain):
        if rule.kind != "BYTES":
            return "be 0 or 1"
        truths = [name for name in (domain.true_value, domain.false_value) if name is not None]
        return f"be {listed(truths, word='or')}"
    if isinstance(domain, IntDomain):
        return f"be {_range_text('a whole number', domain.min, domain.max)}"
    if isinstance(domain, FloatDomain):
        return f"be {_range_text('a number', domain.min, domain.max)}"
    if isinstance(domain, TimeDomain):
        form = domain.string_format or domain.integer_format
        return f"be a time in the format `{safe(form)}`"
    return f"hold pictures of at most {rule.max_bytes} bytes"


def _range_text(noun: str, low: float | None, high: float | None) -> str:
    if low is None and high is None:
        return noun
    if low is None:
        return f"{noun} of at most {_bound(high)}"
    if high is None:
        return f"{noun} of at least {_bound(low)}"
    return f"{noun} from {_bound(low)} to {_bound(high)}"


def _bound(number: float | None) -> str:
    return f"{number:.9g}" if isinstance(number, float) else str(number)

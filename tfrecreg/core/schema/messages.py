"""Messages of findings: the requirement of a rule, in the same words for every record."""

from __future__ import annotations

from tfrecreg.core.example.model import Kind
from tfrecreg.core.schema.definition import (
    BoolDomain,
    FloatDomain,
    ImageDomain,
    IntDomain,
    SchemaFeature,
    SparseFeature,
    StringDomain,
    TimeDomain,
    ValueCount,
    WeightedFeature,
)
from tfrecreg.core.values.suggest import listed
from tfrecreg.core.values.text import safe

KIND_NAMES = {Kind.UNSET: "no kind", Kind.BYTES: "BYTES", Kind.FLOAT: "FLOAT", Kind.INT64: "INT"}
"""Names of the kinds of features in schemas."""

_SHOWN = 5
"""Maximum number of allowed strings that a message lists; more are only counted."""


def rule_text(rule: SchemaFeature | SparseFeature | WeightedFeature, asks: str) -> str:
    """A message: the feature should …"""
    return f"`{safe(rule.name)}` should {asks}"


def counted(number: int, noun: str) -> str:
    """``1 value``, ``3 values``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def presence_text(rule: SchemaFeature | SparseFeature) -> str:
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


def length_text(rule: SchemaFeature) -> str:
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


def values_text(rule: SchemaFeature) -> str:
    """What the rule asks of the values."""
    asks = _domain_text(rule)
    if rule.domain_mass < 1:
        return f"{asks} in at least {100 * rule.domain_mass:.6g}% of its values"
    return asks


def _domain_text(rule: SchemaFeature) -> str:
    domain = rule.checked_domain
    if isinstance(domain, StringDomain):
        if len(domain.allowed) > _SHOWN:
            return f"be one of the {len(domain.allowed)} strings of its domain"
        names = sorted({*domain.values})
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
    if isinstance(domain, ImageDomain):
        limit = domain.max_bytes
        return f"hold images of {'any size' if limit is None else f'at most {limit} bytes'}"
    return f"be any {rule.kind}"


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

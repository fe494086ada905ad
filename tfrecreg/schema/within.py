"""Whether all that one rule allows for values is allowed by another one too."""

from __future__ import annotations

from math import inf

from tfrecreg.schema.contract import FeatureRule, ValueDomain
from tfrecreg.schema.model import BoolDomain, FloatDomain, IntDomain, TimeDomain

__all__ = ["values_within"]


def values_within(inner: FeatureRule, outer: FeatureRule) -> bool:
    """Whether no value that `inner` allows breaks `outer`. Both are of the same type."""
    if outer.is_picture:
        if not inner.is_picture:
            return False
        limit = outer.max_bytes
        return limit is None or (inner.max_bytes is not None and inner.max_bytes <= limit)
    domain = outer.domain
    if domain is None:
        return True
    if inner.min_domain_mass < outer.min_domain_mass:
        return False
    text = outer.kind == "BYTES"
    if isinstance(domain, frozenset):
        values = _strings(inner.domain)
        return values is not None and values <= domain
    if isinstance(domain, BoolDomain):
        if text:
            values = _strings(inner.domain)
            return values is not None and values <= (_strings(domain) or frozenset())
        return isinstance(inner.domain, BoolDomain) or (
            isinstance(inner.domain, IntDomain) and _range_within(inner.domain, IntDomain(0, 1))
        )
    if isinstance(domain, TimeDomain):
        return inner.domain == domain or _is_unchecked(domain)
    if isinstance(inner.domain, BoolDomain) and not text:
        low_high = IntDomain(0, 1) if isinstance(domain, IntDomain) else FloatDomain(0, 1)
        return _range_within(low_high, domain)
    if isinstance(domain, FloatDomain):
        return _floats_within(inner.domain, domain, text)
    return _whole_within(inner.domain, domain, text)


def _strings(domain: ValueDomain | None) -> frozenset[bytes] | None:
    if isinstance(domain, frozenset):
        return domain
    if isinstance(domain, BoolDomain):
        given = (domain.true_value, domain.false_value)
        return frozenset(value.encode() for value in given if value is not None)
    return None


def _is_unchecked(domain: TimeDomain) -> bool:
    return not domain.string_format and domain.integer_format != "PACKED_64_NANOS"


def _whole_within(inner: ValueDomain | None, outer: IntDomain, text: bool) -> bool:
    if not text and outer.min is None and outer.max is None:
        return True
    return isinstance(inner, IntDomain) and _range_within(inner, outer)


def _floats_within(inner: ValueDomain | None, outer: FloatDomain, text: bool) -> bool:
    if text and isinstance(inner, IntDomain):
        return _range_within(inner, outer)
    if not isinstance(inner, FloatDomain):
        return False
    if outer.disallow_nan and not inner.disallow_nan:
        return False
    infinite = inner.disallow_inf is not True and not (_bounded(inner) and not text)
    return not (outer.disallow_inf and infinite) and _range_within(inner, outer)


def _bounded(domain: FloatDomain) -> bool:
    return domain.min not in (None, -inf) and domain.max not in (None, inf)


def _range_within(inner: IntDomain | FloatDomain, outer: IntDomain | FloatDomain) -> bool:
    low, high = outer.min, outer.max
    if low is not None and low != -inf and (inner.min is None or inner.min < low):
        return False
    return high is None or high == inf or (inner.max is not None and inner.max <= high)

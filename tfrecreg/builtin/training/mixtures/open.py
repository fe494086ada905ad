"""Opens a :class:`Mixture`: finds its members, the form of their elements, and their shares."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from numbers import Integral
from typing import Any, Literal, TypeAlias, get_args

from tfrecreg.builtin.training.arrays import Elements
from tfrecreg.builtin.training.data_source import DataSource
from tfrecreg.builtin.training.mixtures.mixing import (
    EpochEnd,
    exact_weight,
    expect_places,
    member_counts,
    temperature_weights,
)
from tfrecreg.builtin.training.mixtures.source import Mixture
from tfrecreg.builtin.training.open import data_source
from tfrecreg.core.registry.data import Built, TargetLike
from tfrecreg.core.registry.find import find_data
from tfrecreg.core.registry.registry import RegistryLike
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import listed
from tfrecreg.core.values.typed_values import expect_one_of

MixtureMember: TypeAlias = TargetLike | DataSource
Weight: TypeAlias = float | Fraction
_OPTIONS = ("raw", "with_key", "with_digest")
"""The options that decide the form of elements, in addition to the features."""
_Labels: TypeAlias = Mapping[str, Sequence[str]]


def mixture(
    members: Mapping[Any, Weight] | Iterable[MixtureMember | tuple[MixtureMember, Weight]],
    split: str | None = None,
    *,
    seed: int = 0,
    by: Literal["proportion", "count"] = "proportion",
    temperature: float | None = None,
    stop: EpochEnd = "first_exhausted",
    size: int | None = None,
    features: Sequence[str] | None = None,
    registry: RegistryLike | None = None,
    **keywords: Any,
) -> Mixture:
    """Mix several datasets into one sequence. Each dataset gets its share of the places.

    Args:
        members: a dictionary from member to weight, or a list of members or of pairs of member and
            weight. A member is a target for `data_source`, or a source that `data_source` returned.
            Weights are relative: 0.7 and 0.3 mean the same as 7 and 3. Without weights, each member
            has one place for each of its records.
        split: the split that is read from each member, as for `data_source`.
        seed: seed for the interleaving of members and for the permutation of each member.
        by: pass ``"count"`` if each weight is a number of places in an epoch.
        temperature: a number T, which replaces weights. A member of n records gets the weight
            n^(1/T). With T = 1, shares are proportional to sizes. A larger T makes shares more
            equal.
        stop: when an epoch ends. With ``"first_exhausted"``, it ends as soon as any member has no
            records left, so no record is repeated. With ``"all_exhausted"``, it ends when every
            record was used at least once, so smaller members are repeated.
        size: number of places in an epoch. It replaces `stop`. Smaller members are repeated.
        features: names of the features that are read. All members must have them.
        registry: an open registry, or a path in a registry. None means the current folder's
            registry.
        keywords: further arguments of `data_source`, such as `decode` and `where`, which are passed
            for each member. Not allowed if a member is an open source.

    Returns:
        A sequence of elements in the same form as from `data_source`.

    Raises:
        UsageError: a weight is not a number above 0, a member is empty, members differ in the form
            of their elements or in the names of classes, or `data_source` refuses a member.
        RefusedError, SchemaError, ManifestError, MissingExtraError, PluginError, StorageError: for
            the same reasons as in `data_source`.

    Example:
        >>> shares = {"mnist@1.0.0": 0.7, "mnist": 0.3}
        >>> mixture = tr.mixture(shares, "train", seed=1, registry=reg, decode=True)
        >>> len(mixture), mixture.counts
        (285, {'mnist@1.0.0': 200, 'mnist': 85})
        >>> [len(batch["image/class/label"]) for batch in mixture.batches(100)]
        [100, 100, 85]
    """
    chosen, weights = _members(members)
    _expect_sense(weights, by, temperature, stop, size)
    sources: dict[str, DataSource] = {}
    labels: dict[str, _Labels] = {}
    for each in chosen:
        source = _opened(each, split, registry, keywords)
        if features is not None:
            source = source.with_features(features)
        if not len(source):
            raise UsageError(f"`{source.name}` has no records to mix")
        name, number = source.name, 1
        while name in sources:  # two splits of a dataset have one name
            number += 1
            name = f"{source.name} ({number})"
        sources[name] = source
        found = [] if isinstance(each, DataSource) else find_data(each, registry)
        if len(found) == 1 and isinstance(found[0], Built):
            labels[name] = found[0].manifest.labels
    if not sources:
        raise UsageError("there is nothing to mix")
    _expect_one_form(sources)
    _expect_same_classes(labels, next(iter(sources.values())).elements)
    names, records = list(sources), [len(each) for each in sources.values()]
    if by == "count":
        if not all(isinstance(each, Integral) and not isinstance(each, bool) for each in weights):
            raise UsageError(f"counts should be whole numbers, found {weights}")
        counts = expect_places(names, [int(each) for each in weights])
    else:
        if temperature is not None or not weights:
            exact = temperature_weights(records, 1 if temperature is None else temperature)
        else:
            exact = [exact_weight(*each) for each in zip(weights, names, strict=True)]
        counts = member_counts(names, records, exact, stop, size)
    return Mixture(sources, counts, seed)


def _members(
    members: Mapping[Any, Weight] | Iterable[MixtureMember | tuple[MixtureMember, Weight]],
) -> tuple[list[MixtureMember], list[Weight]]:
    """The list of members and the list of their weights, which is empty if no weight is given."""
    if isinstance(members, str | os.PathLike | DataSource):
        raise UsageError("a mixture needs a list of members, found a single member")
    pairs: list[Any] = list(members.items() if isinstance(members, Mapping) else members)
    weighted = [isinstance(each, tuple) and len(each) == 2 for each in pairs]
    if not any(isinstance(each, tuple) for each in pairs):
        return pairs, []
    if not all(weighted):
        raise UsageError("some members of the mixture have a weight, but others have none")
    return [member for member, _ in pairs], [weight for _, weight in pairs]


def _expect_sense(
    weights: Sequence[Weight], by: str, temperature: float | None, stop: str, size: int | None
) -> None:
    expect_one_of("by", by, ("proportion", "count"))
    expect_one_of("stop", stop, get_args(EpochEnd))
    if weights and temperature is not None:
        raise UsageError("`temperature` and weights exclude each other")
    if by == "count" and (not weights or temperature is not None or size is not None):
        raise UsageError(
            '`by="count"` needs a count for each member, and excludes `temperature` and `size`'
        )
    if size is not None and size < 1:
        raise UsageError(f"`size` should be 1 or more, found {size}")


def _opened(
    member: MixtureMember,
    split: str | None,
    registry: RegistryLike | None,
    keywords: Mapping[str, Any],
) -> DataSource:
    if not (split is None or isinstance(split, str)):
        raise UsageError(f"a mixture takes one split, found {len(split)}")
    if not isinstance(member, DataSource):
        found = data_source(member, split, registry=registry, **keywords)
        assert isinstance(found, DataSource)
        return found
    if keywords or split is not None:
        named = listed([*(["split"] if split is not None else []), *keywords])
        raise UsageError(f"`{member.name}` is already open, so {named} cannot be given")
    return member


def _expect_one_form(sources: Mapping[str, DataSource]) -> None:
    """Refuse members whose elements differ in form."""
    first_name, first = next(iter(sources.items()))
    form = _form(first.elements)
    for name, source in sources.items():
        other = _form(source.elements)
        for key in [*form, *other]:
            there, here = form.get(key, "missing"), other.get(key, "missing")
            if there != here:
                raise UsageError(
                    f"elements of the members differ in `{key}`: {there} in `{first_name}`, {here} "
                    f"in `{name}`; `features=[…]` can select features that agree"
                )


def _form(elements: Elements) -> dict[str, str]:
    """The form of elements, in words."""
    found = {option: str(getattr(elements, option)) for option in _OPTIONS}
    if elements.columns is None:
        return {**found, "schema": "none"}
    for column in elements.columns:
        decoded = ", decoded" if column.name in elements.images else ""
        optional = "" if column.is_fixed else ", of any length"
        found[column.name] = f"{column.words}{optional}{decoded}"
    return found


def _expect_same_classes(labels: Mapping[str, _Labels], elements: Elements) -> None:
    """Refuse members that have different names for the same class of a feature."""
    names = {each.name for each in elements.columns or ()}
    known: dict[tuple[str, int], tuple[str, str]] = {}
    for member, features in labels.items():
        for feature in sorted(names & features.keys()):
            for number, name in enumerate(features[feature]):
                other, there = known.setdefault((feature, number), (member, name))
                if name and there and name != there:
                    raise UsageError(
                        f"class {number} of `{feature}` is `{there}` in `{other}` and `{name}` in "
                        f"`{member}`: build a derived dataset to number them alike"
                    )

"""Opening a :class:`Mixture`: its members, the form of their elements, and their shares."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from numbers import Integral
from typing import Any, Literal, TypeAlias

from tfrecreg.builtin.training.data_source import DataSource
from tfrecreg.builtin.training.elements import Elements
from tfrecreg.builtin.training.mixtures.mixing import (
    EPOCH_ENDS,
    EpochEnd,
    exact_weight,
    expect_places,
    member_counts,
    temperature_weights,
)
from tfrecreg.builtin.training.mixtures.source import Mixture
from tfrecreg.builtin.training.open import data_source
from tfrecreg.core.example.model import Kind
from tfrecreg.core.registry.registry import RegistryLike
from tfrecreg.core.registry.shardset.find import TargetLike, find, named_targets
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import listed, safe

MixtureMember: TypeAlias = TargetLike | DataSource
Weight: TypeAlias = float | Fraction
_OPTIONS = ("raw", "with_key", "with_digest")
"""What decides the form of elements besides their features."""
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
    """Several datasets as one sequence, in which each has its share.

    Args:
        members: what `data_source` reads, or sources that it opened, each with a weight: a
            dictionary, or pairs. Weights are relative: 0.7 and 0.3 are 7 and 3. Without weights,
            each has as many places as records.
        split: of each member, as for `data_source`.
        seed: of the interleaving, and of the permutations of the members.
        by: ``"count"`` if the weights are the numbers of places in an epoch.
        temperature: T, in place of weights: a member of n records has the weight n^(1/T). 1 mixes
            by size, a larger one more equally.
        stop: an epoch ends with the last record of the member that ``"first_exhausted"`` is, and
            repeats none; or with that of the last one, so that it has every record at least once
            and repeats those of the others: ``"all_exhausted"``.
        size: how many places an epoch has, in place of `stop`. Members that have fewer records
            are repeated.
        features: read these features only, which all members have.
        registry: an open registry or a path in one; None for that of the current folder.
        keywords: of `data_source`, for each member: `schema`, `decode`, `raw`, `with_key`,
            `with_digest`, `verify`, `damaged`, `max_damaged` and `where`. Sources that are open
            keep theirs.

    Returns:
        A sequence of elements, in the form that `data_source` gives them.

    Raises:
        UsageError: a weight is not a number above 0; elements of two members differ in form, or
            name classes differently; a member is empty; or as `data_source`.
        RefusedError, SchemaError, ManifestError, MissingExtraError, PluginError, StorageError: as
            `data_source`.

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
            source = _narrowed(source, features)
        if not len(source):
            raise UsageError(f"`{source.name}` has no records to mix", hint="leave the member out")
        name = _free_name(source.name, sources)
        sources[name] = source
        labels[name] = _labels_of(each, registry)
    if not sources:
        raise UsageError(
            "there is nothing to mix", hint='`mixture({"a@1.*": 0.7, "b@2.0.0": 0.3})`'
        )
    _expect_one_form(sources)
    _expect_same_classes(labels, next(iter(sources.values())).elements)
    names, records = list(sources), [len(each) for each in sources.values()]
    if by == "count":
        counts = expect_places(names, _whole(names, weights))
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
    """The members, and the weight of each; no weights if none has one."""
    pairs = list(members.items() if isinstance(members, Mapping) else members)
    if isinstance(members, str | os.PathLike | DataSource):
        raise UsageError(
            "a mixture has several members, found one", hint='`mixture({"a": 0.7, "b": 0.3})`'
        )
    weighted = [each for each in pairs if isinstance(each, tuple)]
    if not weighted:
        return [each for each in pairs if not isinstance(each, tuple)], []
    if len(weighted) < len(pairs) or any(len(each) != 2 for each in weighted):
        raise UsageError(
            "some members of the mixture have a weight, others have not",
            hint="give each a weight: `[(source, 0.7), (other, 0.3)]`",
        )
    return [member for member, _ in weighted], [weight for _, weight in weighted]


def _expect_sense(
    weights: Sequence[Weight], by: str, temperature: float | None, stop: str, size: int | None
) -> None:
    if by not in ("proportion", "count"):
        raise UsageError(
            f"`by` should be `proportion` or `count`, found `{safe(str(by))}`",
            hint='`by="proportion"` is the default',
        )
    if stop not in EPOCH_ENDS:
        raise UsageError(
            f"`stop` should be {listed(EPOCH_ENDS, word='or')}, found `{safe(str(stop))}`",
            hint="`size=…` gives epochs a length",
        )
    if weights and temperature is not None:
        raise UsageError(
            "`temperature` takes the place of weights",
            hint='`mixture(["a@1.*", "b@2.0.0"], temperature=2)`',
        )
    if by == "count" and (not weights or temperature is not None or size is not None):
        raise UsageError(
            '`by="count"` needs the number of places of each member, and nothing else',
            hint='`mixture({"a@1.*": 3000, "b@2.0.0": 500}, by="count")`',
        )
    if size is not None and size < 1:
        raise UsageError(f"`size` should be 1 or more, found {size}", hint="leave out `size`")


def _whole(names: Sequence[str], weights: Sequence[Weight]) -> list[int]:
    for name, each in zip(names, weights, strict=True):
        if not isinstance(each, Integral) or isinstance(each, bool):
            raise UsageError(
                f"the count of `{name}` should be a whole number, found {each!r}",
                hint='without `by="count"`, weights are proportions',
            )
    return [int(each) for each in weights]


def _opened(
    member: MixtureMember,
    split: str | None,
    registry: RegistryLike | None,
    keywords: Mapping[str, Any],
) -> DataSource:
    if not (split is None or isinstance(split, str)):
        raise UsageError(
            f"a mixture is of one split, found {len(split)}",
            hint='`mixture({…}, "train+test")` joins two; make a mixture for each otherwise',
        )
    if not isinstance(member, DataSource):
        found = data_source(member, split, registry=registry, **keywords)
        assert isinstance(found, DataSource)
        return found
    if keywords or split is not None:
        named = listed([*(["split"] if split is not None else []), *keywords])
        raise UsageError(
            f"`{member.name}` is open already, and keeps its form: {named} cannot be given",
            hint="`data_source` takes them",
        )
    return member


def _narrowed(source: DataSource, features: Sequence[str]) -> DataSource:
    columns = source.elements.columns
    if columns is None:
        raise UsageError(
            f"no schema says which features `{source.name}` has", hint="leave out `features`"
        )
    names = [each.name for each in columns]
    for each in features:
        if each not in names:
            raise UsageError(
                f"`{source.name}` has no feature `{safe(each)}`",
                hint=f"available: {listed(names)}",
            )
    return source.with_features(features)


def _free_name(name: str, taken: Mapping[str, object]) -> str:
    """The name, with a number if it is taken: two splits of a dataset have one name."""
    numbers = range(2, len(taken) + 2)
    return next(each for each in (name, *(f"{name} ({n})" for n in numbers)) if each not in taken)


def _expect_one_form(sources: Mapping[str, DataSource]) -> None:
    """Refuse members whose elements differ in form."""
    first_name, first = next(iter(sources.items()))
    form = _form(first.elements)
    for name, source in sources.items():
        other = _form(source.elements)
        for key in [*form, *other]:
            there, here = form.get(key, "missing"), other.get(key, "missing")
            if there == here:
                continue
            common = [
                each for each in form if each not in _OPTIONS and form[each] == other.get(each)
            ]
            hint = "open all members with the same options and schemas"
            if key not in _OPTIONS and common:
                hint = f"`features=[…]` reads some of those that are alike: {listed(common)}"
            raise UsageError(
                f"elements of the members differ in `{safe(key)}`: {there} in `{first_name}`, "
                f"{here} in `{name}`",
                hint=hint,
            )


def _form(elements: Elements) -> dict[str, str]:
    """What elements have, in words."""
    found = {option: str(getattr(elements, option)) for option in _OPTIONS}
    if elements.columns is None:
        return {**found, "schema": "none"}
    for column in elements.columns:
        kind = Kind(column.kind).name.lower()
        sides = ", ".join("any" if side < 0 else str(side) for side in column.shape)
        optional = "" if column.is_fixed else ", of any length"
        decoded = ", decoded" if column.name in elements.images else ""
        found[column.name] = f"{kind} of shape ({sides}){optional}{decoded}"
    return found


def _labels_of(member: MixtureMember, registry: RegistryLike | None) -> _Labels:
    """The names of classes that the manifest of a member has, by feature."""
    if isinstance(member, DataSource):
        return {}
    found = [find(each, registry) for each in named_targets(member)]
    return {} if len(found) != 1 or isinstance(found[0], str) else found[0].manifest.labels


def _expect_same_classes(labels: Mapping[str, _Labels], elements: Elements) -> None:
    """Refuse members that name one class differently, in a feature that elements have."""
    names = {each.name for each in elements.columns or ()}
    known: dict[tuple[str, int], tuple[str, str]] = {}
    for member, features in labels.items():
        for feature in sorted(names & features.keys()):
            for number, name in enumerate(features[feature]):
                other, there = known.setdefault((feature, number), (member, name))
                if name and there and name != there:
                    raise UsageError(
                        f"class {number} of `{safe(feature)}` is `{safe(there, limit=60)}` in "
                        f"`{other}` and `{safe(name, limit=60)}` in `{member}`",
                        hint="a derived dataset gives classes one numbering; or leave the feature "
                        "out with `features=[…]`",
                    )

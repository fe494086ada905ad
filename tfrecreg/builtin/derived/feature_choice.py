"""The features that records of a derived dataset have: kept, left out, renamed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TypeVar

from tfrecreg.builtin.derived.derived_options import renames
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.suggest import did_you_mean
from tfrecreg.core.values.text import safe

T = TypeVar("T")


def choose_features(entries: tuple[str, ...], known: Iterable[str]) -> dict[str, str]:
    """The new name of each feature that is kept, by its name in the parents."""
    names = sorted(set(known))
    asked = renames("features", entries, alone=True)
    chosen = dict.fromkeys(names, "") if None in asked.values() else {each: each for each in names}
    for entry, new in asked.items():
        matching = [name for name in names if name == entry or fnmatchcase(name, entry)]
        if not matching:
            raise UsageError(
                f"`features` names `{safe(entry, limit=100)}`, which no parent has"
                f"{did_you_mean(entry, names)}",
                hint="`tfrecreg head` of a parent shows its features",
            )
        if new and len(matching) > 1:
            raise UsageError(
                f"`features` gives {len(matching)} features the name `{safe(new, limit=100)}`",
                hint="rename them one by one",
            )
        for name in matching:
            # What is named in full counts more than what a pattern matches.
            if name == entry or name not in asked:
                chosen[name] = name if new is None else new
    taken: dict[str, str] = {}
    for name, new in chosen.items():
        if new and taken.setdefault(new, name) != name:
            raise UsageError(
                f"`features` gives the name `{safe(new, limit=100)}` to "
                f"`{safe(taken[new], limit=100)}` and `{safe(name, limit=100)}`",
                hint="rename or leave out one of them",
            )
    return {name: new for name, new in chosen.items() if new}


def renamed(values: Mapping[str, T], chosen: Mapping[str, str]) -> dict[str, T]:
    """What is known by feature, of those that are kept, by their new names."""
    return {chosen[name]: value for name, value in values.items() if name in chosen}


def renamed_labels(
    labels: Mapping[str, Sequence[str]], chosen: Mapping[str, str]
) -> dict[str, Sequence[str]]:
    """Label maps by the new names of their features.

    A map may be of several features below its name (`…/keypoint` of `…/keypoint/x`), or beside one
    (`…/id` of `…/label`): it stays where they keep their names.
    """
    found: dict[str, Sequence[str]] = {}
    for name, names in labels.items():
        if name in chosen:
            found[chosen[name]] = names
            continue
        beside = f"{name.removesuffix('/id')}/label" if name.endswith("/id") else ""
        kept = (old for old, new in chosen.items() if old == new)
        if any(each == beside or each.startswith(f"{name}/") for each in kept):
            found[name] = names
    return found

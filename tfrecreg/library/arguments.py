"""Arguments of verbs, as operations take them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from tfrecreg.core.registry.lookup import Resolved

if TYPE_CHECKING:
    from tfrecreg.core.check.options import CheckOptions

FailOnWord: TypeAlias = Literal["error", "warning", "never"]
Words: TypeAlias = "str | Iterable[str]"
"""One name, or several."""


def path_or_none(path: str | os.PathLike[str] | None) -> str | None:
    """A path as requests have it; None stays None."""
    return None if path is None else os.fspath(path)


def name_or_none(target: str | os.PathLike[str] | Resolved | None) -> str | None:
    """The reference of a build or a release, or the path; None stays None."""
    return target.name if isinstance(target, Resolved) else path_or_none(target)


def check_options(
    *,
    only: Words,
    skip: Words,
    raw: str | os.PathLike[str] | None,
    schema: str | os.PathLike[str] | None,
    against: str | os.PathLike[str] | Resolved | None,
    fail_on: FailOnWord | None,
    cached: bool,
    same_as: str | Resolved | None = None,
    expect: Mapping[str, int] | None = None,
    source: str | None = None,
    options: Mapping[str, Any] | None = None,
    ignore_missing: bool = False,
) -> CheckOptions:
    """The options of a check."""
    from tfrecreg.core.check.options import CheckOptions

    return CheckOptions(
        only=tuple_of(only),
        skip=tuple_of(skip),
        raw=path_or_none(raw),
        source=source,
        source_options=options or {},
        schema=path_or_none(schema),
        against=name_or_none(against),
        same_as=name_or_none(same_as),
        expect=expect or {},
        fail_on=fail_on,
        cached=cached,
        ignore_missing=ignore_missing,
    )


def tuple_of(words: Words) -> tuple[str, ...]:
    """The names."""
    return (words,) if isinstance(words, str) else tuple(words)

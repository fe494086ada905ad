"""Defines the keywords that all verbs share, and makes functions from the verbs of handles."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from inspect import Parameter, Signature, cleandoc, signature
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Literal,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypedDict,
    TypeVar,
    overload,
)

if TYPE_CHECKING:
    from tfrecreg.core.registry.data import Built, Resolved, TargetLike, TargetsLike
    from tfrecreg.core.registry.registry import RegistryLike
    from tfrecreg.core.values.progress import Progress
    from tfrecreg.core.workers.context import Context, Work
    from tfrecreg.core.workers.interface import Engine

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])

FailOnWord: TypeAlias = Literal["error", "warning", "never"]
PathLike: TypeAlias = "str | os.PathLike[str]"
Words: TypeAlias = "str | Iterable[str]"
"""One name, or several."""


class Shown(TypedDict, total=False):
    """Keywords of a verb that can show its progress."""

    progress: Progress | bool


class Working(Shown, total=False):
    """Keywords of a verb whose work may run on any engine."""

    engine: Engine | None


class Reading(Shown, total=False):
    """Keywords of a verb that also exists as a function. `registry` is for the function only."""

    registry: RegistryLike | None


class Asking(Reading, Working, total=False):
    """The keywords of :class:`Reading` and of :class:`Working`."""


_KINDS = {f"Unpack[{kind.__name__}]": kind for kind in (Shown, Working, Reading, Asking)}
_KEYWORDS = {
    name: Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
    for name, default, annotation in (
        ("registry", None, "RegistryLike | None"),
        ("engine", None, "Engine | None"),
        ("progress", True, "Progress | bool"),
    )
}
_A_TARGET = (
    "a reference (``mnist``, ``mnist@1.0.0``), a build, a release, or a path, URL, glob or\n"
    "        folder of TFRecord files"
)
_LINES = {
    "registry": "an open registry or a path in one; None for the registry of the current folder.",
    "engine": "what runs the work; None for this process.",
    "progress": "whether to show a bar in a notebook or a terminal, or an object to update.",
    "before": "a reference, a build or a release, or the path or URL of a folder with a manifest.",
    "target": f"{_A_TARGET}.",
    "targets": f"{_A_TARGET}; or a list of these.",
}
"""The docstring lines that describe these arguments."""
_END_OF_ARGS = re.compile(r"\n\n(?=Returns:|Raises:|Example:)|\Z")


def work_of(given: Working) -> Work:
    """Return the keywords of a call in the form that operations take. Refuse unknown keywords."""
    context = context_of(Working, given)
    return {"engine": context["engine"], "progress": context["progress"]}


def shown_by(given: Shown) -> Progress:
    """Return the progress display that a call requests. Refuse unknown keywords."""
    return context_of(Shown, given)["progress"]


def context_of(
    kind: type[Any], given: Mapping[str, Any], registry: RegistryLike | None = None
) -> Context:
    """Return the registry and the other keywords of a call in the form that operations take. Refuse
    keywords that `kind` does not declare. `registry` is the registry of the handle, if it has one.
    """
    from tfrecreg.library.display import shown

    for name in given:
        if name not in kind.__annotations__ or (name == "registry" and registry is not None):
            raise TypeError(f"got an unexpected keyword argument {name!r}")
    return {
        "registry": given.get("registry") if registry is None else registry,
        "engine": given.get("engine"),
        "progress": shown(given.get("progress", True)),
    }


def verb(function: F) -> F:
    """Add the shared keywords to the signature and the docstring of a method."""
    *parameters, context = signature(function).parameters.values()
    names = [name for name in _KEYWORDS if name in _KINDS[context.annotation].__annotations__]
    names = [name for name in names if name != "registry"]
    shown = [*parameters, *map(_KEYWORDS.__getitem__, names)]
    _show(function, shown, signature(function).return_annotation)
    text = cleandoc(function.__doc__ or "")
    lines = "".join(f"\n    {name}: {_LINES[name]}" for name in names)
    start = text.find("\n\nArgs:\n")
    end = _END_OF_ARGS.search(text, max(start, 0))
    assert end is not None
    header = "\n\nArgs:" if start < 0 else ""
    function.__doc__ = f"{text[: end.start()]}{header}{lines}{text[end.start() :]}"
    return function


def _show(made: Any, parameters: Iterable[Parameter], returns: str) -> None:
    made.__signature__ = Signature([*parameters], return_annotation=returns)


class OneOrSeveral(Protocol[P, R]):
    """A function that gives one result for one target, and a list of results for a list."""

    @overload
    def __call__(  # type: ignore[overload-overlap]  # a str is an iterable of str
        self, targets: TargetLike, *args: P.args, **keywords: P.kwargs
    ) -> R: ...
    @overload
    def __call__(
        self, targets: Iterable[TargetLike], *args: P.args, **keywords: P.kwargs
    ) -> list[R]: ...


def of_each(verb: Callable[Concatenate[Any, P], R]) -> OneOrSeveral[P, R]:
    """Turn a verb into a function that takes one target or several targets."""
    made: OneOrSeveral[P, R] = _function(verb, "targets", returns="{0} | list[{0}]")
    return made


def of_targets(
    verb: Callable[Concatenate[Any, P], R],
) -> Callable[Concatenate[TargetsLike, P], R]:
    """Turn a verb into a function that returns one result for all its targets."""
    return _function(verb, "targets")


def of_target(
    verb: Callable[Concatenate[Any, P], R], first: str = "target", **names: str
) -> Callable[Concatenate[TargetLike | Built, P], R]:
    """Turn a verb into a function that takes one target. `names` gives arguments new names."""
    return _function(verb, first, names)


def of_datasets(
    verb: Callable[Concatenate[Any, P], R],
) -> Callable[Concatenate[Any, P], list[R]]:
    """Turn a verb into a method of a registry. The method returns one result per dataset."""
    return _function(verb, "self", returns="list[{}]", everything=True)


def of_registry(verb: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Turn a verb into a method of a registry. The method returns one result for all datasets."""
    return _function(verb, "self", everything=True)


def _function(
    verb: Callable[..., Any],
    first: str,
    names: Mapping[str, str] | None = None,
    returns: str = "{}",
    *,
    everything: bool = False,
) -> Callable[..., Any]:
    """Return a function that calls the verb of a handle."""
    names = names or {}
    _, *parameters = signature(verb).parameters.values()
    parameters = [each.replace(name=names.get(each.name, each.name)) for each in parameters]
    place = next(n for n, each in enumerate(parameters) if each.name in ("engine", "progress"))
    kind = Parameter.POSITIONAL_OR_KEYWORD
    text = verb.__doc__ or ""
    for name, other in names.items():
        text = text.replace(f"    {name}: ", f"    {other}: ")
    if not everything:
        parameters.insert(place, _KEYWORDS["registry"])
        text = text.replace("\nArgs:\n", f"\nArgs:\n    {first}: {_LINES[first]}\n", 1)
        after = f"\n    {parameters[place + 1].name}: "
        text = text.replace(after, f"\n    registry: {_LINES['registry']}{after}", 1)
    back = {other: name for name, other in names.items()}

    def made(*arguments: Any, **keywords: Any) -> Any:
        from tfrecreg.library.files import Files

        given = made.__signature__.bind(*arguments, **keywords).arguments  # type: ignore[attr-defined]
        meant = given.pop(first)
        given = {back.get(name, name): value for name, value in given.items()}
        if everything:
            return verb(Files(None), registry=meant, **given)
        return verb(Files(meant), **given)

    made.__name__ = verb.__name__
    made.__qualname__ = f"Registry.{verb.__name__}" if everything else verb.__name__
    made.__doc__ = text
    made.__module__ = verb.__module__
    annotation = Parameter.empty if everything else "TargetsLike"
    shown = [Parameter(first, kind, annotation=annotation), *parameters]
    _show(made, shown, returns.format(signature(verb).return_annotation))
    return made


def path_or_none(path: PathLike | None) -> str | None:
    """Return a path in the form that requests take; None stays None."""
    return None if path is None else os.fspath(path)


def name_or_none(target: PathLike | Resolved | None) -> str | None:
    """Return the reference of a build or release, or the path; None stays None."""
    if target is None or isinstance(target, str | os.PathLike):
        return path_or_none(target)
    return target.name


def tuple_of(words: Words) -> tuple[str, ...]:
    """Return a tuple of the given name or names."""
    return (words,) if isinstance(words, str) else tuple(words)

"""The names of GTO's tags (Git Tag Ops, https://dvc.org/doc/gto): values, no git.

A registered version is ``mnist@v1.2.3``, one that was yanked ``mnist@v1.2.3!``, and a version
that was assigned to a stage ``mnist#prod#4``, where 4 is a counter over the dataset's tags of this
kind. An artifact below the root of its repository has the folder before its name:
``some/registry=mnist@v1.2.3``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tfrecreg.core.registry.git import GitTag
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import safe

_NAME = re.compile(r"[a-zA-Z0-9]([a-zA-Z0-9-/_]*[a-zA-Z0-9])?")
_FOLDER = re.compile(r"[a-zA-Z0-9-_./]+")


def is_name(dataset: str) -> bool:
    """Whether GTO accepts the name of a dataset in tags."""
    return _NAME.fullmatch(dataset) is not None


def artifact(dataset: str, folder: str) -> str:
    """The name of a dataset in GTO's tags."""
    if not is_name(dataset):
        raise UsageError(
            f"GTO has no tags for the name `{safe(dataset)}`: it has to end with a letter or digit",
            hint="git tag --annotate makes one of your own",
        )
    if folder and not _FOLDER.fullmatch(folder):
        raise UsageError(
            f"GTO has no tags for the folder `{safe(folder)}` of the registry: expected letters, "
            "digits, `-`, `_`, `.` and `/`",
            hint="git tag --annotate makes one of your own",
        )
    return f"{folder}={dataset}" if folder else dataset


def check_stage(stage: str) -> None:
    """Refuse an invalid stage name."""
    if not _NAME.fullmatch(stage):
        raise UsageError(
            f"`{safe(stage)}` is not a stage name: expected letters, digits, `-`, `_` and `/`, "
            "with a letter or digit at both ends",
            hint="write `--stage prod`",
        )


def version_tag(name: str, version: str) -> str:
    """The tag of a registered version."""
    return f"{name}@v{version}"


def is_version(name: str, tag: str) -> bool:
    """Whether a tag registers a version of the artifact."""
    return re.fullmatch(rf"{re.escape(name)}@v[0-9]+\.[0-9]+\.[0-9]+(#[0-9]+)?", tag) is not None


def withdrawal_tag(name: str, version: str) -> str:
    """The tag that deregisters a version."""
    return f"{name}@v{version}!"


def stage_tag(name: str, stage: str, tags: Iterable[GitTag]) -> str:
    """The tag of the next assignment to a stage."""
    counters = [0, *(each.counter for each in _events(name, tags))]
    return f"{name}#{stage}#{max(counters) + 1}"


def in_stage(name: str, stage: str, tags: Iterable[GitTag]) -> str | None:
    """The commit in a stage, by its last assignment, or None."""
    events = [each for each in _events(name, tags) if each.stage == stage]
    last = max(events, key=lambda each: (each.tag.time, each.counter), default=None)
    return None if last is None or last.cancelled else last.tag.commit


@dataclass(frozen=True, slots=True)
class _Event:
    tag: GitTag
    stage: str
    """Name of the stage; empty if the tag does not concern a stage."""
    counter: int
    cancelled: bool


_EVENT = re.compile(
    r"(?:#(?P<stage>[a-zA-Z0-9][a-zA-Z0-9-/_]*)|@[^#!]+)(?P<cancel>!?)(?:#(?P<counter>[0-9]+))?"
)


def _events(name: str, tags: Iterable[GitTag]) -> Iterable[_Event]:
    """The events in the annotated tags of an artifact; GTO ignores all other tags."""
    for tag in tags:
        match = _EVENT.fullmatch(tag.name.removeprefix(name))
        if tag.annotated and tag.name.startswith(name) and match is not None:
            counter = int(match["counter"] or 0)
            yield _Event(tag, match["stage"] or "", counter, bool(match["cancel"]))

"""The releases of a dataset as a chain: each says after which other one it was made.

Pure values, so that the releases of two branches can be looked at as if they were one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from tfrecreg.manifest import Manifest
from tfrecreg.reference import Version, parse_version

__all__ = ["RANK", "Link", "forks", "link_of", "step"]

RANK: Mapping[str, int] = {"initial": 0, "patch": 1, "minor": 2, "major": 3}
"""How much a level says."""


@dataclass(frozen=True, slots=True)
class Link:
    """What the chain is made of: one release."""

    version: Version
    digest: str
    """Of its manifest."""
    content: str
    parent: Version | None
    parent_digest: str
    """Of the parent's manifest, as this release has it; empty where there is no parent."""
    level: Literal["initial", "patch", "minor", "major"]
    """Of the change that it records."""


def link_of(manifest: Manifest) -> Link:
    """The link that a release's manifest is.

    Raises:
        UsageError: a version in it is none.
        ValueError: it is no release.
    """
    release = manifest.release
    if release is None:
        raise ValueError("the manifest of a build is no link")
    parent = release.parent
    return Link(
        version=parse_version(release.version),
        digest=manifest.digest,
        content=manifest.content,
        parent=parse_version(parent.version) if parent is not None else None,
        parent_digest=parent.digest if parent is not None else "",
        level=release.change.level,
    )


def step(before: Version, after: Version) -> Literal["patch", "minor", "major"]:
    """What a number says of the change since another one."""
    if after.major != before.major:
        return "major"
    return "minor" if after.minor != before.minor else "patch"


def forks(links: Mapping[Version, Link]) -> Iterator[tuple[Link, Link]]:
    """Releases that were made after another one than that which comes before them by number.

    A release between the two that has the content of the parent and added no names is no matter,
    and so is one of another MAJOR number, which promises nothing.

    Args:
        links: the releases, by version.

    Yields:
        the release, and the last one before it that it should have been made after.
    """
    ordered = sorted(links)
    for position, version in enumerate(ordered):
        link = links[version]
        parent = links.get(link.parent) if link.parent is not None else None
        between = [
            links[each]
            for each in ordered[:position]
            if each.major == version.major and (link.parent is None or each > link.parent)
        ]
        others = [
            each
            for each in between
            if parent is None or each.content != parent.content or each.level == "minor"
        ]
        if others:
            yield link, others[-1]

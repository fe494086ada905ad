"""References and versions: ``mnist``, ``mnist@1.2.0``, ``mnist@1.*``, ``mnist@latest``,
``mnist#prod``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import safe

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_NUMBER = r"(?:0|[1-9][0-9]{0,8})"
_VERSION = re.compile(rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})")
_SELECTOR = re.compile(rf"latest|{_NUMBER}\.\*|{_NUMBER}\.{_NUMBER}\.(?:\*|{_NUMBER})")
_TAG = re.compile(rf"v({_NUMBER}\.{_NUMBER}\.{_NUMBER})")
"""Matches the version in a tag of GTO."""
_STAGE = re.compile(r"([a-zA-Z0-9](?:[a-zA-Z0-9-/_]*[a-zA-Z0-9])?)(?:#[0-9]+)?")
"""Matches the stage in a tag of GTO. A counter may follow the stage."""


@dataclass(frozen=True, order=True, slots=True)
class Version:
    """The version of a release: three numbers, which are compared in order. There are no
    pre-releases.
    """

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"

    def bump(self, level: Literal["major", "minor", "patch"]) -> Version:
        """The next version: the number for `level` is one higher, the numbers after it are 0."""
        if level == "major":
            return Version(self.major + 1, 0, 0)
        if level == "minor":
            return Version(self.major, self.minor + 1, 0)
        return Version(self.major, self.minor, self.patch + 1)


@dataclass(frozen=True, slots=True)
class Reference:
    name: str
    """Name of the dataset."""
    selector: str | None
    """The part after the `@`: a version, ``1.*``, ``1.2.*`` or ``latest``. It is ``#prod`` for a
    stage and None for the build.
    """

    def __str__(self) -> str:
        if self.selector is None:
            return self.name
        return f"{self.name}{'' if self.stage else '@'}{self.selector}"

    @property
    def stage(self) -> str | None:
        """The stage that the reference names; None if it names no stage. Tags of git assign
        releases to stages.
        """
        selector = self.selector or ""
        return selector[1:] if selector.startswith("#") else None

    @property
    def version(self) -> Version | None:
        """The single version that the reference names; None if it names the build, a stage or
        several versions.
        """
        selector = self.selector or ""
        return parse_version(selector) if _VERSION.fullmatch(selector) else None

    def matches(self, version: Version) -> bool:
        """Whether the reference matches the release `version`. A build's reference matches no
        release.
        """
        selector = self.selector or ""
        if selector.endswith("*"):
            return str(version).startswith(selector.removesuffix("*"))
        return selector in ("latest", str(version))

    def pick(self, versions: Iterable[Version]) -> Version | None:
        """The newest of `versions` that the reference matches; None if it matches no version."""
        return max((version for version in versions if self.matches(version)), default=None)


def parse_reference(text: str) -> Reference:
    if "://" in text:  # a URL may hold a secret: only its protocol is shown
        raise UsageError(f"expected a reference, found a URL of `{text.partition('://')[0]}://`")
    named, sharp, stage = text.partition("#")
    if sharp and "@" not in named:
        check_dataset_name(named)
        match = _STAGE.fullmatch(stage)
        if match is None:
            raise UsageError(
                f"`{stage}` in `{text}` is not a stage name: expected letters, "
                "digits, `-`, `_` and `/`, with a letter or digit at both ends"
            )
        return Reference(named, f"#{match[1]}")
    name, at, selector = text.partition("@")
    check_dataset_name(name)
    if not at:
        return Reference(name, None)
    tag = _TAG.fullmatch(selector)
    if tag:
        selector = tag[1]
    if not _SELECTOR.fullmatch(selector):
        raise UsageError(
            f"`{text}` does not name a version: "
            "expected MAJOR.MINOR.PATCH, MAJOR.*, MAJOR.MINOR.* or latest"
        )
    return Reference(name, selector)


def parse_version(text: str) -> Version:
    match = _VERSION.fullmatch(text)
    if match is None:
        raise UsageError(f"`{safe(text)}` is not a version: expected MAJOR.MINOR.PATCH")
    return Version(*map(int, match.groups()))


def is_dataset_name(text: str) -> bool:
    """Whether `text` can name a dataset: ``[a-z][a-z0-9_]*``, which TFDS and GTO accept as well."""
    return _NAME.fullmatch(text) is not None


def check_dataset_name(text: str) -> None:
    if not is_dataset_name(text):
        raise UsageError(
            f"`{text}` is not a dataset name: expected a lower-case letter, then lower-case "
            "letters, digits and `_`"
        )


def looks_like_reference(text: str) -> bool:
    """Whether `text` has the form of a reference. The name of a file may have this form as well."""
    try:
        parse_reference(text)
    except UsageError:
        return False
    return True

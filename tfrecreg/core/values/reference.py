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
"""The version in a GTO tag."""
_STAGE = re.compile(r"([a-zA-Z0-9](?:[a-zA-Z0-9-/_]*[a-zA-Z0-9])?)(?:#[0-9]+)?")
"""The stage in a GTO tag; a counter may follow it."""
_SEPARATOR = re.compile(r"[:/=]+")
_FORMS = "write `mnist`, `mnist@1.2.0`, `mnist@1.*`, `mnist@1.2.*` or `mnist@latest`"


@dataclass(frozen=True, order=True, slots=True)
class Version:
    """The number of a release. Compares as numbers do; there are no pre-releases."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"

    def bump(self, level: Literal["major", "minor", "patch"]) -> Version:
        """The next version of that level: the numbers after it are reset to 0."""
        if level == "major":
            return Version(self.major + 1, 0, 0)
        if level == "minor":
            return Version(self.major, self.minor + 1, 0)
        if level == "patch":
            return Version(self.major, self.minor, self.patch + 1)
        raise ValueError(f"no level {level!r}: expected major, minor or patch")


@dataclass(frozen=True, slots=True)
class Reference:
    """A parsed reference to a build or a release. Created by :func:`parse_reference`."""

    name: str
    """Name of the dataset."""
    selector: str | None
    """The part after the `@`: a version, ``1.*``, ``1.2.*`` or ``latest``; or a stage with its `#`.
    None means the build."""

    def __str__(self) -> str:
        if self.selector is None:
            return self.name
        return f"{self.name}{'' if self.stage else '@'}{self.selector}"

    @property
    def stage(self) -> str | None:
        """The stage that it names; None if it does not name one. Git tags assign releases to
        stages.
        """
        selector = self.selector or ""
        return selector[1:] if selector.startswith("#") else None

    @property
    def version(self) -> Version | None:
        """The single version that it names; None if it names the build or several versions."""
        match = _VERSION.fullmatch(self.selector or "")
        return _version(match) if match else None

    def matches(self, version: Version) -> bool:
        """Whether it matches the release `version`. A build's reference matches none."""
        if self.selector is None:
            return False
        start = self.selector.removesuffix("*")
        if start != self.selector:
            return str(version).startswith(start)
        return self.selector in ("latest", str(version))

    def pick(self, versions: Iterable[Version]) -> Version | None:
        """The newest of `versions` that it matches; None if it matches none."""
        return max((version for version in versions if self.matches(version)), default=None)


def parse_reference(text: str) -> Reference:
    """Read a reference."""
    if "://" in text:  # it may hold a secret: only its protocol is shown
        raise UsageError(
            f"expected a reference, found a URL of `{safe(text.partition('://')[0])}://`",
            hint="`check`, `head`, `stats`, `digest`, `diff`, `salvage` and `report` read URLs",
        )
    named, sharp, stage = text.partition("#")
    if sharp and "@" not in named:
        if not is_dataset_name(named):
            raise _no_name(named, f"#{stage}")
        return Reference(named, f"#{_stage(named, stage)}")
    name, at, selector = text.partition("@")
    if not text:
        raise UsageError("the reference is empty", hint=_FORMS)
    if not name:
        raise UsageError(f"`{safe(text)}` does not name a dataset before the `@`", hint=_FORMS)
    if not is_dataset_name(name):
        raise _no_name(name, at + selector)
    if not at:
        return Reference(name, None)
    if not selector:
        raise UsageError(
            f"`{name}@` does not name a version after the `@`",
            hint=f"write `{name}` for the build, `{name}@latest` for the newest release",
        )
    tag = _TAG.fullmatch(selector)
    if tag:
        selector = tag[1]
    if not _SELECTOR.fullmatch(selector):
        meant = _selector(selector)
        raise UsageError(
            f"`{safe(selector)}` in `{safe(text)}` does not name a version: "
            "expected MAJOR.MINOR.PATCH, MAJOR.*, MAJOR.MINOR.* or latest"
            f"{_reason(selector)}",
            hint=f"write `{name}@{meant}`" if meant else _stage_hint(name, selector) or _FORMS,
        )
    return Reference(name, selector)


def _stage_hint(name: str, selector: str) -> str:
    """A hint where a stage may be meant: a word, such as ``prod``."""
    is_word = selector.isalpha() and _STAGE.fullmatch(selector)
    if not is_word:
        return ""
    staged = f"write `{name}#{selector}` for the release in the stage `{selector}`"
    return f"{staged}, or `{name}@latest` for the newest one"


def parse_version(text: str) -> Version:
    """Read a version, MAJOR.MINOR.PATCH."""
    match = _VERSION.fullmatch(text)
    if match:
        return _version(match)
    meant = _selector(text)
    fits = _VERSION.fullmatch(meant) is not None
    raise UsageError(
        f"`{safe(text)}` is not a version: expected MAJOR.MINOR.PATCH{_reason(text)}",
        hint=f"write `{meant}`" if fits else "write three numbers, such as `1.2.0`",
    )


def is_dataset_name(text: str) -> bool:
    """Whether `text` is a dataset's name: ``[a-z][a-z0-9_]*``, which TFDS and GTO also accept."""
    return _NAME.fullmatch(text) is not None


def check_dataset_name(text: str) -> None:
    """Refuse an invalid dataset name."""
    if not is_dataset_name(text):
        raise _no_name(text)


def looks_like_reference(text: str) -> bool:
    """Whether `text` has the form of a reference. A file may also have such a name."""
    try:
        parse_reference(text)
    except UsageError:
        return False
    return True


def _stage(name: str, text: str) -> str:
    match = _STAGE.fullmatch(text)
    if match:
        return match[1]
    raise UsageError(
        f"`{safe(text)}` in `{name}#{safe(text)}` is not a stage name: expected letters, digits, "
        "`-`, `_` and `/`, with a letter or digit at both ends",
        hint=f"write `{name}#prod` for the release in the stage `prod`",
    )


def _version(match: re.Match[str]) -> Version:
    return Version(int(match[1]), int(match[2]), int(match[3]))


def _no_name(name: str, rest: str = "") -> UsageError:
    wrong = next((each for each in name if not re.match(r"[a-z0-9_]", each)), "")
    if not name:
        found = "an empty one"
    elif wrong:
        found = f"`{safe(wrong)}`"
    else:
        found = f"`{name[0]}` at its start"
    meant = re.sub(r"[^a-z0-9_]+", "_", name.lower()).strip("_").lstrip("0123456789_")
    hint = f"write `{meant}{rest}`" if meant and looks_like_reference(meant + rest) else ""
    head, *others = _SEPARATOR.split(name, maxsplit=1)
    if others and not rest and looks_like_reference(f"{head}@{others[0]}"):
        hint = f"write `{head}@{others[0]}`"
    return UsageError(
        f"`{safe(name)}` is not a dataset name: expected a lower-case letter, then lower-case "
        f"letters, digits and `_`, found {found}",
        hint=hint,
    )


def _selector(text: str) -> str:
    """The selector that an invalid text probably means; empty if unknown."""
    found = text.strip().lower().removeprefix("@").removeprefix("v")
    found = re.split(r"[-+]", found, maxsplit=1)[0]
    parts = [
        "*" if part in ("x", "*") else re.sub(r"^0+(?=.)", "", part) for part in found.split(".")
    ]
    while parts[-2:] == ["*", "*"]:
        parts.pop()
    if parts == ["*"]:
        return "latest"
    if len(parts) < 3 and parts[-1] != "*":
        parts.append("*")
    meant = "latest" if found == "latest" else ".".join(parts)
    return meant if _SELECTOR.fullmatch(meant) else ""


def _reason(text: str) -> str:
    if re.search(r"(?<![0-9])0[0-9]", text):
        return ", without leading zeros"
    if re.fullmatch(r"[0-9.]*[0-9][-+].*", text):
        return "; there are no pre-releases"
    if re.search(r"[0-9]{10}", text):
        return ", each number of at most 9 digits"
    return ""

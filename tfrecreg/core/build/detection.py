"""Chooses a source for raw data if the user names none.

The globs of each known source are tried first. If a glob matches, or if the source has no globs,
the source's function `examine` (if any) looks at the data. The source with the strongest match is
chosen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path, PurePosixPath
from shlex import quote
from typing import Any

from tfrecreg.core.plugins.guard import calling, failure
from tfrecreg.core.plugins.manager import Announced, Plugins
from tfrecreg.core.plugins.recognition import (
    STRENGTHS,
    RawPreview,
    Recognition,
    Strength,
)
from tfrecreg.core.plugins.records import SourceRecord
from tfrecreg.core.storage.interface import Entry
from tfrecreg.core.storage.raw import RawStorage, raw_storage
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import listed, safe, type_text

_SPLITS = ("train", "val", "valid", "validation", "test")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A source that can read a folder, and what it recognized there."""

    source: str
    """The source's name. It includes the distribution if another source has the same name."""
    found: Recognition

    def to_json(self) -> dict[str, Any]:
        """The entry in the document of ``build --json``."""
        return {"source": self.source, **self.found._asdict()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    raw: str
    """The raw data as the user named them."""
    chosen: Candidate
    others: tuple[Candidate, ...]
    """Other sources that can read some of the raw data. They match less well than `chosen`."""
    above: str
    """A parent folder that the source can read as well; empty if there is none."""
    failed: tuple[str, ...]
    """Why some sources were not considered, one line each."""

    def notes(self) -> Iterator[str]:
        """Lines about the chosen source, the names that it does not read, and other sources."""
        yield f"source `{self.chosen.source}`: `{self.raw}` has {self.chosen.found.reason}"
        if self.chosen.found.aside:
            yield f"  not read: {listed(self.chosen.found.aside, most=3)}"
        for each in self.others:
            yield (
                f"  not used: the source `{each.source}`, a weaker match that finds "
                f"{each.found.reason}"
            )
        if self.above:
            yield f"  `{safe(self.above, limit=1000)}` also has files for this source"
        yield from self.failed

    def to_json(self) -> dict[str, Any]:
        """The entry in the document of ``build --json``."""
        return {
            **self.chosen.to_json(),
            "others": [each.to_json() for each in self.others],
            "above": self.above,
            "failed": list(self.failed),
        }


def detect_source(raw: RawStorage, place: str, known: Plugins, dataset: str) -> Detection:
    """The source that fits the raw data best."""
    shown = safe(place, limit=1000)
    candidates, failed = candidates_for(raw, known)
    is_refused = bool(candidates) and candidates[0].found.strength == "refused"
    near = None
    if is_refused or not candidates:
        near = _near(raw, known.every(SourceRecord), place)
    if near or not candidates:
        takers = {each.name for each in known.every(SourceRecord) if each.record.raw is None}
        names = ", ".join(sorted(takers))
        raise UsageError(
            "; ".join((f"`{shown}` does not look like the raw data of any source", *failed)),
            hint=(
                f"`{near[1]}` has files for the source `{near[0]}`: {_command(dataset, *near)}"
                if near
                else f"tfrecreg build {dataset} --source SOURCE --raw PATH; sources: {names}"
            ),
        )
    best = [each for each in candidates if each.found.strength == candidates[0].found.strength]
    if len(best) > 1:
        reasons = " and ".join(f"`{each.source}` (it has {each.found.reason})" for each in best)
        raise UsageError(
            f"`{shown}` fits {len(best)} sources equally: {reasons}",
            hint="; or ".join(_command(dataset, each.source, place) for each in best),
        )
    chosen = best[0]
    near = _near(raw, [known.find(SourceRecord, chosen.source)])
    return Detection(
        raw=shown,
        chosen=chosen,
        others=tuple(each for each in candidates[1:] if each.found.strength != "refused"),
        above=near[1] if near and raw.root.startswith(near[1]) else "",
        failed=tuple(failed),
    )


def candidates_for(raw: RawStorage, known: Plugins) -> tuple[list[Candidate], list[str]]:
    """The sources that can read raw data, strongest first, and one line per source that failed."""
    listed: dict[str, list[Entry]] = {}  # each folder is listed once, for all sources
    RawPreview(raw, listed).entries()  # so that an error common to all sources is reported once
    candidates: list[Candidate] = []
    failed: list[str] = []
    announced = known.every(SourceRecord)
    names = [each.name for each in announced]
    for each in announced:
        name = each.name if names.count(each.name) == 1 else each.qualified
        try:
            found = _recognized(each, RawPreview(raw, listed))
        except Exception as error:
            told = failure(each.plugin_id, "failed in `examine`", error)
            failed.append(f"{told.message}, so the source was not considered")
            continue
        if found is not None:
            candidates.append(Candidate(name, found))
    # A stable sort: equal candidates stay in order of name.
    candidates.sort(key=lambda each: STRENGTHS.index(each.found.strength))
    return candidates, failed


def _recognized(announced: Announced[SourceRecord], preview: RawPreview) -> Recognition | None:
    record = announced.record
    matches = [
        (glob, path) for glob in record.recognizes for path in islice(preview.matches(glob), 1)
    ]
    if record.examine is not None and (matches or not record.recognizes):
        with calling():
            found = _checked(record.examine(preview))
        if found is not None:
            return found
    if record.examine is not None or not matches:
        refused = next((path for glob in record.refuses for path in preview.matches(glob)), None)
        if refused is None:
            return None
        detail = f"files such as `{safe(refused)}`, which cannot be read as they are"
        return Recognition("refused", detail)
    glob, path = min(matches, key=lambda match: STRENGTHS.index(glob_strength(match[0])))
    kind = f"files such as `{safe(path)}`"
    return Recognition(glob_strength(glob), kind)


def glob_strength(glob: str) -> Strength:
    """``exact`` if the glob contains a file or folder name that is not just a suffix or the name of
    a split: ``data.yaml``, ``Annotations/*.xml``. Otherwise ``general``, as for ``*.csv``.
    """
    *folders, name = glob.split("/")
    stem = name.rpartition(".")[0] or name
    for part in (*folders, stem):
        word = re.sub(r"\[(.)[^]]*\]", r"\1", part).strip("*?")
        if sum(map(str.isalpha, word)) >= 3 and word.lower() not in _SPLITS:
            return "exact"
    return "general"


def _checked(found: object) -> Recognition | None:
    """A plugin's answer. Its reason is escaped and cut to 500 characters."""
    if found is None:
        return None
    if not isinstance(found, Recognition) or found.strength not in STRENGTHS:
        raise TypeError(f"expected a Recognition or None, found {type_text(found)}")
    reason = found.reason if found.reason.isprintable() else safe(found.reason, limit=500)
    return Recognition(found.strength, reason[:500], [str(each) for each in found.aside])


def _near(
    raw: RawStorage, announced: Sequence[Announced[SourceRecord]], place: str = ""
) -> tuple[str, str] | None:
    """The source that best fits a folder one or two levels away, and the path of this folder. A
    parent folder must match exactly, or have a matching layout and no other files.
    """
    found: list[tuple[int, str, str]] = []
    for each in announced:
        folder = _at_or_above(raw.root, each.record)
        if place and not folder:
            look = RawPreview(raw)
            below = (
                path.rsplit("/", glob.count("/") + 1)[0]
                for above in ("*/", "*/*/")
                for glob in each.record.recognizes
                for path in look.matches(f"{above}{glob}")
            )
            folder = next((f"{place.rstrip('/')}/{path}" for path in below), "")
        if folder in ("", raw.root):
            continue
        with suppress(Exception):
            here = _recognized(each, RawPreview(raw_storage(folder)))
            if here is None or here.strength == "refused":
                continue
            apart = not raw.root.startswith(folder) or here.strength == "exact"
            if apart or (here.strength == "layout" and not here.aside):
                found.append((STRENGTHS.index(here.strength), each.name, folder))
    return min(found)[1:] if found else None


def _at_or_above(root: str, record: SourceRecord) -> str:
    """The folder at or above `root` that has files for a source; empty if there is none."""
    path = Path(root)
    # The folder may be unreadable, or the plugin's glob invalid.
    with suppress(OSError, ValueError, NotImplementedError):
        for glob in record.recognizes:
            parts = PurePosixPath(glob).parts
            for up in range(min(len(parts), len(path.parents)) + 1):
                names, rest = path.parts[len(path.parts) - up :], parts[up:]
                if not all(map(fnmatch, names, parts)):
                    continue
                if any(path.glob("/".join(rest))) if rest else path.is_file():
                    return str(path.parents[up - 1] if up else path)
    return ""


def _command(dataset: str, source: str, place: str) -> str:
    return f"tfrecreg build {dataset} --source {source} --raw {safe(quote(place), limit=1000)}"

"""The source of raw data for which no source is named.

Each source that a registry has is asked. The globs of its record are tried first; a source with
`examine` looks further. The strongest recognition wins; two that are equally strong are both named,
and the user chooses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from shlex import quote
from typing import Any, cast

from tfrecreg.core.plugins.discovery import Announced
from tfrecreg.core.plugins.guard import calling, failure
from tfrecreg.core.plugins.manager import Plugins
from tfrecreg.core.plugins.recognition import (
    MAX_NAMES,
    STRENGTHS,
    RawPreview,
    Recognition,
    Strength,
    raw_folder,
)
from tfrecreg.core.plugins.records import SourceRecord
from tfrecreg.core.storage.interface import Entry
from tfrecreg.core.storage.raw import RawStorage, raw_storage
from tfrecreg.core.values.errors import TfrecregError, UsageError
from tfrecreg.core.values.text import safe, type_text

_SHOWN = 3
_SPLITS = ("train", "val", "valid", "validation", "test")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A source that can read a folder, and why."""

    source: str
    """Its name, with the distribution where another one has the same."""
    found: Recognition

    @property
    def rank(self) -> int:
        """0 for the strongest."""
        return STRENGTHS.index(self.found.strength)

    def to_json(self) -> dict[str, Any]:
        """As the document of ``build --json`` has it."""
        return {
            "source": self.source,
            "strength": self.found.strength,
            "reason": self.found.reason,
            "aside": list(self.found.aside),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """The choice of a source."""

    raw: str
    """The raw data as the user named them."""
    chosen: Candidate
    others: tuple[Candidate, ...]
    """Weaker sources that can also read some of it."""
    above: str
    """A folder near it that the source can read as well; empty if there is none."""
    failed: tuple[str, ...]
    """Why sources could not be asked, one line each."""

    @property
    def source(self) -> str:
        """The name of the chosen source."""
        return self.chosen.source

    def notes(self) -> Iterator[str]:
        """What was found, used and not read, one line each."""
        yield f"source `{self.chosen.source}`: `{self.raw}` has {self.chosen.found.reason}"
        if self.chosen.found.aside:
            yield f"  not read: {_names(self.chosen.found.aside)}"
        for each in self.others:
            yield (
                f"  not used: the source `{each.source}`, a weaker match: it has "
                f"{each.found.reason}"
            )
        if self.above:
            yield f"  `{safe(self.above, limit=1000)}` also has files for this source"
        yield from self.failed

    def to_json(self) -> dict[str, Any]:
        """As the document of ``build --json`` has it."""
        return {
            **self.chosen.to_json(),
            "others": [each.to_json() for each in self.others],
            "above": self.above,
            "failed": list(self.failed),
        }


def detect_source(raw: RawStorage, place: str, known: Plugins, dataset: str) -> Detection:
    """The source that fits raw data best."""
    shown = safe(place, limit=1000)
    candidates, failed = candidates_for(raw, known)
    is_refused = bool(candidates) and candidates[0].found.strength == "refused"
    near = None if candidates and not is_refused else _near(raw, place, known)
    if near or not candidates:
        takers = {each.name for each in known.every(SourceRecord) if each.record.raw is None}
        names = ", ".join(sorted(takers))
        raise UsageError(
            "; ".join((f"`{shown}` does not look like the raw data of any source", *failed)),
            hint=(
                f"`{safe(near[1], limit=1000)}` has files for the source `{near[0]}`: "
                f"{_command(dataset, near[0], near[1])}"
                if near
                else f"tfrecreg build {dataset} --source SOURCE --raw PATH; sources: {names}"
            ),
        )
    best = [each for each in candidates if each.rank == candidates[0].rank]
    if len(best) > 1:
        reasons = " and ".join(f"`{each.source}` (it has {each.found.reason})" for each in best)
        raise UsageError(
            f"`{shown}` fits {len(best)} sources equally: {reasons}",
            hint="; or ".join(_command(dataset, each.source, place) for each in best),
        )
    chosen = best[0]
    return Detection(
        raw=shown,
        chosen=chosen,
        others=tuple(each for each in candidates[1:] if each.found.strength != "refused"),
        above=_above(raw, known.find(SourceRecord, chosen.source)),
        failed=tuple(failed),
    )


def other_source_hint(raw: RawStorage, used: str, known: Plugins) -> str:
    """A hint where raw data were refused by a source and another one recognizes them exactly, or by
    their layout; empty otherwise.
    """
    candidates, _ = candidates_for(raw, known)
    strong = [each for each in candidates if each.found.strength in ("exact", "layout")]
    if not strong or any(used == each.source.rpartition(":")[2] for each in candidates):
        return ""
    first = strong[0]
    return f"it has {first.found.reason}: --source {first.source}"


def stronger_sources(raw: RawStorage, used: str, known: Plugins) -> Iterator[str]:
    """A note where another source than the one that the user named recognizes raw data exactly."""
    with suppress(TfrecregError):  # of a folder that cannot be listed: the build says so
        candidates, _ = candidates_for(raw, known, enough=used)
        exact = [each for each in candidates if each.found.strength == "exact"]
        if exact and not any(used == each.source.rpartition(":")[2] for each in exact):
            first = exact[0]
            yield f"the source `{first.source}` may fit better: there are {first.found.reason}"


def candidates_for(
    raw: RawStorage, known: Plugins, *, enough: str = ""
) -> tuple[list[Candidate], list[str]]:
    """The sources that can read raw data, the strongest first, and why others could not be
    asked.
    """
    raw = cast("RawStorage", _ListedOnce(raw))
    RawPreview(raw).entries()  # so that what fails for every source is said once
    candidates: list[Candidate] = []
    failed: list[str] = []
    announced = known.every(SourceRecord)
    names = [each.name for each in announced]
    for each in sorted(announced, key=lambda each: each.name != enough):
        name = each.name if names.count(each.name) == 1 else each.qualified
        try:
            with calling(each.plugin_id, "examine"):
                found = _recognized(each, RawPreview(raw))
        except Exception as error:
            told = failure(each.plugin_id, "failed in `examine`", error)
            failed.append(f"{told.message}, so it was not asked")
            continue
        if found is not None:
            candidates.append(Candidate(name, found))
            if each.name == enough and found.strength == "exact":
                break
    candidates.sort(key=lambda each: each.rank)  # stable: by name among equals
    return candidates, failed


class _ListedOnce:
    """Raw data each folder of which is listed once for all sources."""

    def __init__(self, raw: RawStorage) -> None:
        self._raw = raw
        self._listed: dict[str, list[Entry]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    def list(self, folder: str, *, recursive: bool) -> Iterator[Entry]:
        """The names directly in a folder, as many as a :class:`RawPreview` offers."""
        if folder not in self._listed:
            found = self._raw.list(folder, recursive=recursive)
            self._listed[folder] = [*islice(found, MAX_NAMES)]
        return iter(self._listed[folder])


def _recognized(announced: Announced[SourceRecord], preview: RawPreview) -> Recognition | None:
    record = announced.record
    matches = [
        (glob, path) for glob in record.recognizes for path in islice(preview.matches(glob), 1)
    ]
    if record.examine is not None and (matches or not record.recognizes):
        found = _checked(record.examine(preview))
        if found is not None:
            return found
    if record.examine is not None or not matches:
        refused = next((path for glob in record.refuses for path in preview.matches(glob)), None)
        if refused is None:
            return None
        return Recognition("refused", f"files such as `{safe(refused)}`, not readable as they are")
    glob, path = min(matches, key=lambda match: STRENGTHS.index(glob_strength(match[0])))
    kind = f"files such as `{safe(path)}`"
    return Recognition(glob_strength(glob), kind)


def glob_strength(glob: str) -> Strength:
    """The strength of a match of a glob.

    ``exact`` if the glob has a name in it, of a file or of a folder, apart from suffixes and the
    names of splits: ``data.yaml``, ``Annotations/*.xml``. ``general`` for ``*.csv``.
    """
    *folders, name = glob.split("/")
    stem = name.rpartition(".")[0] or name
    for part in (*folders, stem):
        word = re.sub(r"\[(.)[^]]*\]", r"\1", part).strip("*?")
        if sum(map(str.isalpha, word)) >= 3 and word.lower() not in _SPLITS:
            return "exact"
    return "general"


def _checked(found: object) -> Recognition | None:
    """What a plugin returned, with texts that can be shown."""
    if found is None:
        return None
    if not isinstance(found, Recognition) or found.strength not in STRENGTHS:
        raise TypeError(f"expected a Recognition or None, found {type_text(found)}")
    reason = found.reason if found.reason.isprintable() else safe(found.reason, limit=500)
    return Recognition(found.strength, reason[:500], [str(each) for each in found.aside])


def _near(raw: RawStorage, place: str, known: Plugins) -> tuple[str, str] | None:
    """The source and the folder, one or two levels away, that fit best."""
    folders: dict[str, None] = {}
    for each in known.every(SourceRecord):
        if raw.is_local:
            folders[raw_folder(raw.root, each.record)] = None
            continue
        for glob in each.record.recognizes:
            for path in islice(RawPreview(raw).matches(f"*/{glob}"), 1):
                folders[f"{place.rstrip('/')}/{path.partition('/')[0]}"] = None
    found = [
        (best[0].rank, best[0].source, folder)
        for folder in folders
        if folder not in ("", raw.root)
        for best in candidates_for(raw_storage(folder), known)[:1]
        if best and _fits(best[0].found, raw, folder)
    ]
    return min(found)[1:] if found else None


def fitting_folder(raw: RawStorage, announced: Announced[SourceRecord]) -> str:
    """The folder at, above or below local raw data that a source recognizes; empty if there is
    none. One above has nothing else in it, apart from what only this source reads.
    """
    folder = raw_folder(raw.root, announced.record) if raw.is_local else ""
    if folder in ("", raw.root):
        return folder
    with suppress(Exception), calling(announced.plugin_id, "examine"):
        found = _recognized(announced, RawPreview(raw_storage(folder)))
        if found is not None and (announced.record.examine is None or _fits(found, raw, folder)):
            return folder
    return ""


def _fits(found: Recognition, raw: RawStorage, folder: str) -> bool:
    """Whether a hint may name a folder below raw data; one above has nothing else in it."""
    if found.strength == "exact" or not raw.root.startswith(folder):
        return found.strength != "refused"
    return found.strength == "layout" and not found.aside


def _above(raw: RawStorage, announced: Announced[SourceRecord]) -> str:
    """The folder above that a source can read, if the raw data are a part of it."""
    folder = fitting_folder(raw, announced)
    return folder if folder and folder != raw.root and raw.root.startswith(folder) else ""


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(f"`{safe(name, limit=60)}`" for name in names[:_SHOWN]) + more


def _command(dataset: str, source: str, place: str) -> str:
    return f"tfrecreg build {dataset} --source {source} --raw {safe(quote(place), limit=1000)}"

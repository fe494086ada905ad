"""Putting stages and artifacts into a `dvc.yaml` in which others may have theirs.

A line that is not of our entries stays as it is, to the byte: a parser tells where entries begin,
and their lines are replaced. The result is parsed again: if anything else would mean something
else, nothing is written.
"""

from __future__ import annotations

import io
import posixpath
import textwrap
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from tfrecreg.errors import MissingExtraError, UsageError
from tfrecreg.operations.pipeline.stages import MARK, StageEntry
from tfrecreg.suggest import listed
from tfrecreg.text import safe
from tfrecreg.tracking.dvc import PIPELINE_NAME

Section = Literal["stages", "artifacts"]
"""A key of the file, below which are entries by their names."""
_SECTIONS: tuple[Section, ...] = ("stages", "artifacts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """The file with our entries of a section as they should be."""

    text: str
    added: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    """Entries of datasets that are no longer configured."""


def edited(
    text: str | None, wanted: Mapping[str, StageEntry], *, prune: bool, section: Section = "stages"
) -> Edited:
    """The file's text with entries of a section added, updated and removed.

    An existing artifact under one of the names is kept if it has the expected path.

    Args:
        text: of the file; None if it does not exist.
        wanted: name to entry, in order.
        prune: whether entries of ours that are not wanted are removed.

    Raises:
        UsageError: it is not a `dvc.yaml`, has a foreign entry under one of the names, or
            cannot be edited without other changes.
        MissingExtraError: DVC, which provides what reads and writes YAML, is not installed.
    """
    text = text or ""
    data = _parsed(text)
    entries = data.get(section) or {}
    wanted = _to_write(section, entries, wanted)
    updated = tuple(name for name in wanted if name in entries and entries[name] != wanted[name])
    added = tuple(name for name in wanted if name not in entries)
    removed = tuple(
        name
        for name, entry in entries.items()
        if name not in wanted and prune and _owner(entry) is not None
    )
    if not (updated or added or removed):
        return Edited(text=text)
    result = _written(
        text, data, section, {name: wanted[name] for name in updated + added}, removed
    )
    return Edited(text=result, added=added, updated=updated, removed=removed)


def owners(text: str | None, section: Section) -> set[str]:
    """The datasets that have entries of ours in a section.

    Raises:
        UsageError: it is not a `dvc.yaml`.
        MissingExtraError: DVC, which provides what reads YAML, is not installed.
    """
    entries = _parsed(text or "").get(section) or {}
    return {name for name in map(_owner, entries.values()) if name is not None}


def expect_params(text: str, wanted: Mapping[str, StageEntry]) -> None:
    """Refuse stages of ours that do not name the parameters which they should.

    Args:
        wanted: stage by name; those that the file does not have are not missed.

    Raises:
        UsageError: a stage names other parameters: a key was added to the configuration since.
        MissingExtraError: DVC, which provides what reads YAML, is not installed.
    """
    there = _parsed(text).get("stages") or {}
    for name, entry in wanted.items():
        found: Any = there.get(name)
        if _owner(found) is not None and found.get("params", []) != entry.get("params", []):
            raise UsageError(
                f"`{PIPELINE_NAME}` lacks settings that `{safe(name)}` depends on: DVC may not "
                "have rerun it after they changed",
                hint="tfrecreg pipeline, then dvc repro",
            )


def _to_write(
    section: Section, entries: Mapping[str, Any], wanted: Mapping[str, StageEntry]
) -> dict[str, StageEntry]:
    """The wanted entries, without those that another dataset wrote."""
    ours: dict[str, StageEntry] = {}
    for name, entry in wanted.items():
        there = entries.get(name)
        if name not in entries or _owner(there) is not None:
            ours[name] = entry
        elif section == "stages":
            raise UsageError(
                f"`{PIPELINE_NAME}` has a stage `{safe(name)}` that tfrecreg did not write",
                hint="rename that stage, and what depends on it",
            )
        elif (path := _artifact_path(there)) != _artifact_path(entry):
            raise UsageError(
                f"`{PIPELINE_NAME}` has an artifact `{safe(name)}` that tfrecreg did not write: "
                f"expected the path `{_artifact_path(entry)}`, found `{safe(path)}`",
                hint=f"rename that artifact: tags `{safe(name)}@v…` are those of the dataset",
            )
    return ours


def _artifact_path(artifact: Any) -> str:
    path = artifact.get("path") if isinstance(artifact, Mapping) else None
    return posixpath.normpath(str(path))


def _owner(entry: Any) -> str | None:
    """The dataset of an entry of ours; None for a foreign entry."""
    meta = entry.get("meta") if isinstance(entry, Mapping) else None
    name = meta.get(MARK) if isinstance(meta, Mapping) else None
    return name if isinstance(name, str) else None


def _parsed(text: str) -> Any:
    """The file as data with line numbers."""
    yaml = _yaml()
    from ruamel.yaml.error import YAMLError

    try:
        found = yaml.load(text)
    except (YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 1}" if mark is not None else ""
        raise UsageError(
            f"`{PIPELINE_NAME}` is not YAML{line}", hint="`dvc status` names the mistake"
        ) from None
    found = {} if found is None else found
    for section in _SECTIONS:
        if not isinstance(found, dict) or not isinstance(found.get(section) or {}, dict):
            raise _unfit(section)
    return found


def _yaml() -> Any:
    """What reads and writes YAML for DVC."""
    try:
        from ruamel.yaml import YAML
    except ImportError:
        raise MissingExtraError(f"reading and writing `{PIPELINE_NAME}`", "dvc") from None
    yaml = YAML()
    yaml.width = 1_000_000  # a command stays in its line
    return yaml


def _written(
    text: str,
    data: Any,
    section: Section,
    changed: Mapping[str, StageEntry],
    removed: Sequence[str],
) -> str:
    """The file with changes in a section."""
    entries: Any = data.get(section) or {}
    end = "\r\n" if "\r\n" in text else "\n"
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith(("\n", "\r")):
        lines[-1] += end
    if section not in data:
        lines += [end, f"{section}:{end}"][not lines :]
    header = data.lc.key(section)[0] if section in data else len(lines) - 1
    starts = [entries.lc.key(name) for name in entries]
    below = [line for line, _ in (data.lc.key(key) for key in data) if line > header]
    stops = [*(line for line, _ in starts[1:]), min(below, default=len(lines))]
    indent = starts[0][1] if starts else 2
    blocks = {name: _block(name, entry, indent, end) for name, entry in changed.items()}
    new = [each for name in blocks if name not in entries for each in (end, blocks[name])]
    if not entries:
        lines[header + 1 : header + 1] = new[1:]
    # From the last to the first, so that the numbers before stay true.
    for name, (start, _), limit in reversed([*zip(entries, starts, stops, strict=False)]):
        stop = limit
        # Comments and blank lines before the next entry are more often about that one.
        while stop > start + 1 and lines[stop - 1].lstrip()[:1] in ("", "#"):
            stop -= 1
        lines[stop:stop], new = new, []
        if name in removed:
            apart = stop < len(lines) and not lines[stop].strip()
            del lines[start : stop + apart]
        elif name in blocks:
            lines[start:stop] = [blocks[name]]
    meant = {name: each for name, each in {**entries, **changed}.items() if name not in removed}
    expected = {**data, section: meant}
    if not meant:
        del lines[header], expected[section]  # DVC refuses a section without entries
    result = "".join(lines)
    with suppress(UsageError):  # the file was valid YAML before
        if _parsed(result) == expected:
            return result
    raise _unfit(section, [name for name in changed if name not in entries])


def _block(name: str, entry: StageEntry, indent: int, end: str) -> str:
    """An entry as lines of YAML."""
    stream = io.StringIO()
    _yaml().dump({name: entry}, stream)
    return textwrap.indent(stream.getvalue(), " " * indent).replace("\n", end)


def _unfit(section: Section, names: Sequence[str] = ()) -> UsageError:
    return UsageError(
        f"`{PIPELINE_NAME}` cannot be edited automatically",
        hint=f"write `{section}:` and each {section[:-1]} below it as a block of its own lines"
        + (f"; missing are {listed(names)}" if names else ""),
    )

"""Putting stages and artifacts into a `dvc.yaml` in which others may have theirs.

The file is edited as text: a line that is not of our entries stays as it is, to the byte. Where our
entries begin and end is what a YAML parser says of the text, and the result is parsed again: if
anything else would mean something else, nothing is written.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tfrecreg.errors import MissingExtraError, UsageError
from tfrecreg.operations.pipeline.stages import MARK, StageEntry
from tfrecreg.suggest import listed
from tfrecreg.text import safe
from tfrecreg.tracking.dvc import PIPELINE_NAME

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_/.-]*")
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
"""Words that YAML 1.1 does not read as text."""

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


@dataclass(slots=True)
class _Found:
    """An entry of the file, and the lines that it takes."""

    start: int
    end: int
    entry: Any


@dataclass(slots=True)
class _Layout:
    """Where things are in the file."""

    section: Section
    lines: list[str]
    entries: dict[str, _Found] = field(default_factory=dict)
    indent: int = 2
    start: int = 0
    """The line of the section's key."""
    end: int | None = None
    """The line before which a new entry goes; None where the section is missing."""


def edited(
    text: str | None, wanted: Mapping[str, StageEntry], *, prune: bool, section: Section = "stages"
) -> Edited:
    """The file's text with entries of a section added, updated and removed.

    An existing artifact under one of the names is kept if it has the expected path.

    Args:
        text: of the file; None where there is none.
        wanted: name to entry, in order.
        prune: whether entries of ours that are not wanted are removed.
        section: of the file.

    Raises:
        UsageError: it is not a `dvc.yaml`, has a stranger's entry under one of the names, or
            cannot be edited without other changes.
        MissingExtraError: there is a file, and DVC, which provides the YAML parser, is not
            installed.
    """
    if text is None or not text.strip():
        if not wanted:
            return Edited(text=text or "")
        blocks = "".join(f"\n{render(name, entry, 2)}" for name, entry in wanted.items())
        head = "" if text is None else text
        return Edited(text=f"{head}{section}:\n{blocks[1:]}", added=tuple(wanted))
    before = _parsed(text)
    found = _layout(text, section)
    wanted = _ours(found, wanted)
    updated = [
        name
        for name, entry in wanted.items()
        if name in found.entries and found.entries[name].entry != entry
    ]
    added = [name for name in wanted if name not in found.entries]
    removed = [
        name
        for name, there in found.entries.items()
        if name not in wanted and prune and _owner(there.entry) is not None
    ]
    if not (updated or added or removed):
        return Edited(text=text)
    result = _spliced(found, text, {name: wanted[name] for name in (*updated, *added)}, removed)
    _unharmed(section, before, result, wanted, removed)
    return Edited(text=result, added=tuple(added), updated=tuple(updated), removed=tuple(removed))


def owners(text: str | None, section: Section) -> set[str]:
    """The datasets that have entries of ours in a section.

    Raises:
        UsageError: it is not a `dvc.yaml`.
        MissingExtraError: DVC, which provides the YAML parser, is not installed.
    """
    if text is None or not text.strip():
        return set()
    entries = _parsed(text).get(section) or {}
    return {name for name in map(_owner, entries.values()) if name is not None}


def expect_params(text: str, wanted: Mapping[str, StageEntry]) -> None:
    """Refuse stages of ours that do not name the parameters which they should.

    Args:
        text: of the file.
        wanted: stage by name; those that the file does not have are not missed.

    Raises:
        UsageError: a stage names other parameters: a key was added to the configuration since.
        MissingExtraError: DVC, which provides the YAML parser, is not installed.
    """
    there = _parsed(text).get("stages") or {}
    for name, entry in wanted.items():
        found: Any = there.get(name)
        if _owner(found) is not None and found.get("params", []) != entry.get("params", []):
            raise UsageError(
                f"`{PIPELINE_NAME}` does not name the settings that `{safe(name)}` depends on now: "
                "a change of them may not have run it again",
                hint="tfrecreg pipeline, then dvc repro",
            )


def _ours(found: _Layout, wanted: Mapping[str, StageEntry]) -> dict[str, StageEntry]:
    """The wanted entries that nobody else has written yet."""
    ours: dict[str, StageEntry] = {}
    for name, entry in wanted.items():
        there = found.entries.get(name)
        if there is None or _owner(there.entry) is not None:
            ours[name] = entry
        elif found.section == "stages":
            raise UsageError(
                f"`{PIPELINE_NAME}` has a stage `{safe(name)}` that tfrecreg did not write",
                hint="rename that stage, and what depends on it",
            )
        elif _path(there.entry) != _path(entry):
            raise UsageError(
                f"`{PIPELINE_NAME}` has an artifact `{safe(name)}` that tfrecreg did not write: "
                f"expected the path `{_path(entry)}`, found `{safe(_path(there.entry))}`",
                hint=f"rename that artifact: tags `{safe(name)}@v…` are those of the dataset",
            )
    return ours


def _path(artifact: Any) -> str:
    path = artifact.get("path") if isinstance(artifact, Mapping) else None
    return posixpath.normpath(str(path))


def _owner(entry: Any) -> str | None:
    """The dataset of an entry of ours; None for a stranger's."""
    meta = entry.get("meta") if isinstance(entry, Mapping) else None
    name = meta.get(MARK) if isinstance(meta, Mapping) else None
    return name if isinstance(name, str) else None


def _spliced(
    found: _Layout, text: str, changed: Mapping[str, StageEntry], removed: Sequence[str]
) -> str:
    end = "\r\n" if "\r\n" in text else "\n"
    lines = list(found.lines)
    if lines and not lines[-1].endswith(("\n", "\r")):
        lines[-1] += end
    at = found.end
    new = [
        render(name, entry, found.indent).replace("\n", end)
        for name, entry in changed.items()
        if name not in found.entries
    ]
    if at is None:
        lines += [end, f"{found.section}:{end}", *_apart(new, end)]
    else:
        lines[at:at] = [end, *_apart(new, end)] if new and found.entries else new
    # From the last to the first, so that the numbers before stay true.
    for name, there in sorted(found.entries.items(), key=lambda each: -each[1].start):
        if name in removed:
            apart = there.end < len(lines) and not lines[there.end].strip()
            del lines[there.start : there.end + apart]
        elif name in changed:
            block = render(name, changed[name], found.indent).replace("\n", end)
            lines[there.start : there.end] = [block]
    if not new and len(removed) == len(found.entries):
        del lines[found.start]  # DVC refuses a section without entries
    return "".join(lines)


def _apart(blocks: Sequence[str], end: str) -> list[str]:
    return [each for block in blocks for each in (block, end)][:-1]


def _layout(text: str, section: Section) -> _Layout:
    """Find the entries of a section.

    Raises:
        UsageError: the file, or the section, are not in block style.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.nodes import MappingNode

    found = _Layout(section, text.splitlines(keepends=True))
    root = YAML(typ="safe", pure=True).compose(text)
    if root is None:
        return found
    if not isinstance(root, MappingNode) or root.flow_style:
        raise _unfit(section)
    keys = [key for key, _ in root.value]
    for number, (key, value) in enumerate(root.value):
        if key.value != section:
            continue
        found.start = key.start_mark.line
        after = keys[number + 1].start_mark.line if number + 1 < len(keys) else len(found.lines)
        if not isinstance(value, MappingNode):
            if value.value not in ("", "null", "~"):
                raise _unfit(section)
            found.end = key.end_mark.line + 1
            if found.lines[found.start].partition("#")[0].strip() != f"{section}:":
                raise _unfit(section)
        elif value.flow_style:
            raise _unfit(section)
        else:
            _add_entries(found, value, after, _parsed(text)[section])
    return found


def _add_entries(found: _Layout, node: Any, after: int, entries: Mapping[str, Any]) -> None:
    starts = [key.start_mark.line for key, _ in node.value]
    ends = [*starts[1:], after]
    for (key, _), start, limit in zip(node.value, starts, ends, strict=True):
        end = limit
        # Comments and blank lines before the next entry are more often about that one.
        while end > start + 1 and _is_blank(found.lines[end - 1]):
            end -= 1
        found.entries[str(key.value)] = _Found(start, end, entries.get(str(key.value)))
        found.indent = key.start_mark.column
        found.end = end


def _is_blank(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def _parsed(text: str) -> Any:
    """The file as data.

    Raises:
        UsageError: it is not YAML, or a section is not a mapping of entries.
        MissingExtraError: nothing that reads YAML is installed.
    """
    try:
        from ruamel.yaml import YAML
        from ruamel.yaml.error import YAMLError
    except ImportError:
        raise MissingExtraError(f"changing a `{PIPELINE_NAME}` that is there", "dvc") from None
    try:
        found = YAML(typ="safe", pure=True).load(text)
    except (YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 1}" if mark is not None else ""
        raise UsageError(
            f"`{PIPELINE_NAME}` is not YAML{line}", hint="`dvc status` names the mistake"
        ) from None
    found = {} if found is None else found
    if not isinstance(found, dict):
        raise _unfit("stages")
    for section in _SECTIONS:
        if not isinstance(found.get(section) or {}, dict):
            raise _unfit(section)
    return found


def _unharmed(
    section: Section,
    before: Mapping[str, Any],
    result: str,
    wanted: Mapping[str, StageEntry],
    removed: Sequence[str],
) -> None:
    """Refuse a result in which anything but our entries has another meaning, or none."""
    missing = [name for name in wanted if name not in (before.get(section) or {})]
    entries = {**(before.get(section) or {}), **wanted}
    entries = {name: entry for name, entry in entries.items() if name not in removed}
    expected = {**before, section: entries}
    if not entries:
        del expected[section]
    try:
        after = _parsed(result)
    except UsageError:  # the file itself was read
        raise _unfit(section, missing) from None
    if after != expected:
        raise _unfit(section, missing)


def _unfit(section: Section, names: Sequence[str] = ()) -> UsageError:
    return UsageError(
        f"`{PIPELINE_NAME}` cannot be edited automatically",
        hint=f"write `{section}:` and each {section[:-1]} below it as a block of its own lines"
        + (f"; missing are {listed(names)}" if names else ""),
    )


def render(name: str, entry: StageEntry, indent: int) -> str:
    """An entry as lines of YAML in block style, its name `indent` columns from the left."""
    lines = [f"{_scalar(name)}:", *(f"  {line}" for line in _mapping(entry))]
    return "".join(f"{' ' * indent}{line}\n" for line in lines)


def _mapping(value: Mapping[str, Any]) -> list[str]:
    lines = []
    for key, item in value.items():
        if isinstance(item, Mapping):
            lines += [f"{_scalar(key)}:", *(f"  {line}" for line in _mapping(item))]
        elif isinstance(item, list):
            lines.append(f"{_scalar(key)}:")
            for each in item:
                inner = _mapping(each) if isinstance(each, Mapping) else [_text(each)]
                lines += [f"- {inner[0]}", *(f"  {line}" for line in inner[1:])]
        else:
            lines.append(f"{_scalar(key)}: {_text(item)}")
    return lines


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return _scalar(str(value))


def _scalar(text: str) -> str:
    """Text as it is where YAML takes it for that text, else in quotes."""
    if " " in text and re.fullmatch(r"[a-z][A-Za-z0-9_/. -]*[A-Za-z0-9]", text):
        return text  # a command
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return json.dumps(text, ensure_ascii=False)

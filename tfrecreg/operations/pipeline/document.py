"""Putting stages into a `dvc.yaml` in which others may have theirs.

The file is edited as text: a line that is not of our stages stays as it is, to the byte. Where our
stages begin and end is what a YAML parser says of the text, and the result is parsed again: if
anything else would mean something else, nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tfrecreg.errors import MissingExtraError, UsageError
from tfrecreg.operations.pipeline.stages import MARK, Stage, render
from tfrecreg.suggest import listed
from tfrecreg.text import safe

__all__ = ["PIPELINE_NAME", "Edited", "edited"]

PIPELINE_NAME = "dvc.yaml"
_STAGES = "stages"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """The file with our stages as they should be."""

    text: str
    added: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    """Of datasets that are gone."""


@dataclass(slots=True)
class _Found:
    """A stage of the file, and the lines that it takes."""

    start: int
    end: int
    stage: Any


@dataclass(slots=True)
class _Layout:
    """Where things are in the file."""

    lines: list[str]
    stages: dict[str, _Found] = field(default_factory=dict)
    indent: int = 2
    end: int | None = None
    """The line before which a new stage goes; None where there is no mapping of stages yet."""


def edited(text: str | None, wanted: Mapping[str, Stage], *, prune: bool) -> Edited:
    """The file's text with stages added, updated and removed.

    Args:
        text: of the file; None where there is none.
        wanted: name to stage, in order.
        prune: whether stages of ours that are not wanted are removed.

    Raises:
        UsageError: it is no `dvc.yaml`, has a stranger's stage under one of the names, or is laid
            out so that it cannot be edited without other changes.
        MissingExtraError: there is a file, and DVC, which brings what reads YAML, is not installed.
    """
    if text is None or not text.strip():
        blocks = "".join(f"\n{render(name, stage, 2)}" for name, stage in wanted.items())
        head = "" if text is None else text
        return Edited(text=f"{head}{_STAGES}:\n{blocks[1:]}", added=tuple(wanted))
    before = _parsed(text)
    found = _layout(text)
    for name in wanted:
        there = found.stages.get(name)
        if there is not None and _owner(there.stage) is None:
            raise UsageError(
                f"`{PIPELINE_NAME}` has a stage `{safe(name)}` that tfrecreg did not write",
                hint="rename that stage, and what depends on it",
            )
    updated = [
        name
        for name, stage in wanted.items()
        if name in found.stages and found.stages[name].stage != stage
    ]
    added = [name for name in wanted if name not in found.stages]
    removed = [
        name
        for name, there in found.stages.items()
        if name not in wanted and prune and _owner(there.stage) is not None
    ]
    if not (updated or added or removed):
        return Edited(text=text)
    result = _spliced(found, text, {name: wanted[name] for name in (*updated, *added)}, removed)
    _unharmed(before, _parsed(result), wanted, removed)
    return Edited(text=result, added=tuple(added), updated=tuple(updated), removed=tuple(removed))


def _owner(stage: Any) -> str | None:
    """The dataset of a stage of ours; None for a stranger's."""
    meta = stage.get("meta") if isinstance(stage, Mapping) else None
    name = meta.get(MARK) if isinstance(meta, Mapping) else None
    return name if isinstance(name, str) else None


def _spliced(
    found: _Layout, text: str, changed: Mapping[str, Stage], removed: Sequence[str]
) -> str:
    end = "\r\n" if "\r\n" in text else "\n"
    lines = list(found.lines)
    if lines and not lines[-1].endswith(("\n", "\r")):
        lines[-1] += end
    at = found.end
    new = [
        render(name, stage, found.indent).replace("\n", end)
        for name, stage in changed.items()
        if name not in found.stages
    ]
    if at is None:
        lines += [end, f"{_STAGES}:{end}", *_apart(new, end)]
    else:
        lines[at:at] = [end, *_apart(new, end)] if new and found.stages else new
    # From the last to the first, so that the numbers before stay true.
    for name, there in sorted(found.stages.items(), key=lambda each: -each[1].start):
        if name in removed:
            del lines[there.start : there.end]
        elif name in changed:
            block = render(name, changed[name], found.indent).replace("\n", end)
            lines[there.start : there.end] = [block]
    return "".join(lines)


def _apart(blocks: Sequence[str], end: str) -> list[str]:
    return [each for block in blocks for each in (block, end)][:-1]


def _layout(text: str) -> _Layout:
    """Find the stages.

    Raises:
        UsageError: the file, or its stages, are not in block style.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.nodes import MappingNode

    found = _Layout(text.splitlines(keepends=True))
    root = YAML(typ="safe", pure=True).compose(text)
    if root is None:
        return found
    if not isinstance(root, MappingNode) or root.flow_style:
        raise _unfit()
    keys = [key for key, _ in root.value]
    for number, (key, value) in enumerate(root.value):
        if key.value != _STAGES:
            continue
        after = keys[number + 1].start_mark.line if number + 1 < len(keys) else len(found.lines)
        if not isinstance(value, MappingNode):
            if value.value not in ("", "null", "~"):
                raise _unfit()
            found.end = key.end_mark.line + 1
            if found.lines[key.start_mark.line].partition("#")[0].strip() != f"{_STAGES}:":
                raise _unfit()
        elif value.flow_style:
            raise _unfit()
        else:
            _add_stages(found, value, after, _parsed(text)[_STAGES])
    return found


def _add_stages(found: _Layout, node: Any, after: int, stages: Mapping[str, Any]) -> None:
    starts = [key.start_mark.line for key, _ in node.value]
    ends = [*starts[1:], after]
    for (key, _), start, limit in zip(node.value, starts, ends, strict=True):
        end = limit
        # Comments and blank lines before the next stage are more often about that one.
        while end > start + 1 and _is_blank(found.lines[end - 1]):
            end -= 1
        found.stages[str(key.value)] = _Found(start, end, stages.get(str(key.value)))
        found.indent = key.start_mark.column
        found.end = end


def _is_blank(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def _parsed(text: str) -> Any:
    """The file as data.

    Raises:
        UsageError: it is no YAML, or no mapping of stages.
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
            f"`{PIPELINE_NAME}` is no YAML{line}", hint="`dvc status` says what is wrong with it"
        ) from None
    found = {} if found is None else found
    if not isinstance(found, dict) or not isinstance(found.get(_STAGES) or {}, dict):
        raise _unfit()
    return found


def _unharmed(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    wanted: Mapping[str, Stage],
    removed: Sequence[str],
) -> None:
    """Refuse a result in which anything but our stages has another meaning."""
    expected = {**(before.get(_STAGES) or {}), **wanted}
    expected = {name: stage for name, stage in expected.items() if name not in removed}
    if after != {**before, _STAGES: expected}:
        raise _unfit([name for name in wanted if name not in (before.get(_STAGES) or {})])


def _unfit(names: Sequence[str] = ()) -> UsageError:
    return UsageError(
        f"`{PIPELINE_NAME}` cannot be changed without changing more",
        hint="write `stages:` and each stage below it as a block of its own lines"
        + (f"; missing are {listed(names)}" if names else ""),
    )

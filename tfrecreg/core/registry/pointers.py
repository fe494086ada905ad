"""DVC's small files about a folder, read without DVC: a hint must not take its start-up time.

DVC itself writes `NAME.dvc` and `dvc.lock`, and `tfrecreg pipeline` writes `dvc.yaml`, all in
YAML's block style. Files in another style are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

_STAGE = re.compile(r"  ([^\s#:][^:]*):\s*")
_SECTION = re.compile(r"\s*([a-z]+):\s*")
_HASH = re.compile(r"""\bmd5["']?:\s*["']?([^\s"',}]+)""")
_OUT = re.compile(r"\s*- (?:path: )?([^\s:]+?)/?:?\s*")


def bring_command(root: str, folder: str) -> str:
    """The command that fetches a folder from DVC; empty if DVC's files do not name it."""
    if Path(root, f"{folder}.dvc").is_file():
        return f"dvc pull {folder}.dvc"
    if folder in dict(_outs(Path(root, "dvc.lock"))):
        return f"dvc pull {folder}"
    stage = dict(_outs(Path(root, "dvc.yaml"))).get(folder)
    return f"dvc repro {stage}" if stage is not None else ""


def is_output(root: str, folder: str) -> bool:
    """Whether a stage of a pipeline makes a folder, which then has no pointer of its own."""
    return any(folder in dict(_outs(Path(root, name))) for name in ("dvc.lock", "dvc.yaml"))


def named_hash(root: str, folder: str) -> str | None:
    """DVC's hash of a folder, from its pointer or else from `dvc.lock`; empty if it has none, None
    if neither names the folder.
    """
    lock = dict(_outs(Path(root, "dvc.lock"), _HASH))
    try:
        text = Path(root, f"{folder}.dvc").read_text("utf-8", "replace")
    except FileNotFoundError:
        return lock.get(folder)
    except OSError:
        return ""
    found = _HASH.search(text)
    return found[1] if found is not None else ""


def _outs(path: Path, wanted: re.Pattern[str] | None = None) -> Iterator[tuple[str, str]]:
    """The outs of the stages in `dvc.yaml` or `dvc.lock`, each with the name of its stage."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return
    stage = section = folder = ""
    for line in lines:
        if named := _STAGE.fullmatch(line):
            stage, section = named[1], ""
        elif opened := _SECTION.fullmatch(line):
            section = opened[1]
        elif section == "outs" and (out := _OUT.fullmatch(line)):
            folder = out[1]
            yield folder, "" if wanted else stage
        elif section == "outs" and wanted and (value := wanted.search(line)):
            yield folder, value[1]

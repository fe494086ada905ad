"""The header of `README.md`, a block of YAML: configurations, features, license."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tfrecreg.api import MissingExtraError, RawDataError, Storage, safe

README = "README.md"
_MAX_BYTES = 8 << 20
_MAX_HEADER = 1 << 20


@dataclass(frozen=True)
class Readme:
    """What the README says of a dataset."""

    header: Mapping[str, Any] = field(default_factory=dict)
    citation_line: int = 0
    """Line of the first BibTeX entry in its text, from 1; 0 for none."""

    def configs(self) -> list[Mapping[str, Any]]:
        """The configurations with their files."""
        found = _as_list(self.header.get("configs"))
        if not all(isinstance(each, dict) for each in found):
            raise _unusable("`configs` should be a list of mappings")
        return found

    def info(self, config: str) -> Mapping[str, Any]:
        """The `dataset_info` of a configuration; empty for none."""
        found = self.header.get("dataset_info")
        infos = [each for each in _as_list(found) if isinstance(each, dict)]
        named = [each for each in infos if str(each.get("config_name", "default")) == config]
        if named:
            return named[0]
        return infos[0] if len(infos) == 1 else {}

    def examples(self, config: str) -> dict[str, int]:
        """The number of rows of each split, where it is told."""
        found: dict[str, int] = {}
        for each in _as_list(self.info(config).get("splits")):
            if isinstance(each, dict):
                name, count = each.get("name"), each.get("num_examples")
                if isinstance(name, str) and name and type(count) is int:
                    found[name] = count
        return found

    def suggestions(self, config: str) -> dict[str, str]:
        """What could go into `datasets/NAME.toml`: key to text, escaped."""
        info = self.info(config)
        found: dict[str, str] = {}
        for key, names in (
            ("license", ("license", "license_name")),
            ("description", ("description", "pretty_name")),
        ):
            for name in names:
                value = info.get(name) or self.header.get(name)
                if isinstance(value, list):
                    value = ", ".join(map(str, value))
                if isinstance(value, str) and value.strip():
                    found[key] = safe(" ".join(value.split()), limit=200)
                    break
        if self.citation_line:
            found["citation"] = f"the BibTeX in {README}, line {self.citation_line}"
        return found


def read_readme(raw: Storage) -> Readme:
    """The README of a folder; an empty one if there is none, or it has no header."""
    found = raw.stat(README, follow="all")
    if found is None or found.kind != "file":
        return Readme()
    if found.size > _MAX_BYTES:
        raise _unusable(f"it has {found.size} bytes, at most {_MAX_BYTES} are read")
    text = raw.read(README).decode("utf-8-sig", "replace")
    lines = text.splitlines()
    citation = next(
        (at for at, line in enumerate(lines, 1) if line.lstrip().startswith("@") and "{" in line),
        0,
    )
    if not lines or lines[0].rstrip() != "---":
        return Readme(citation_line=citation)
    end = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), 0)
    if not end:
        raise _unusable("its header, which begins with `---`, does not end")
    header = "\n".join(lines[1:end])
    if len(header) > _MAX_HEADER:
        raise _unusable(f"its header has {len(header)} characters, at most {_MAX_HEADER} are read")
    return Readme(_parsed(header), citation)


def _parsed(text: str) -> Mapping[str, Any]:
    try:
        import yaml
    except ImportError:
        raise MissingExtraError(f"reading the header of `{README}`", "yaml") from None

    try:
        found = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _unusable(f"its header is not YAML: {safe(_one_line(error), limit=200)}") from None
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise _unusable("its header should be a mapping")
    return found


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _as_list(found: Any) -> list[Any]:
    return found if isinstance(found, list) else [] if found is None else [found]


def _unusable(why: str) -> RawDataError:
    return RawDataError(
        f"`{README}` cannot be used: {why}",
        hint="correct its header, or remove the file from the raw folder: the features are then "
        "those of the Parquet files",
    )

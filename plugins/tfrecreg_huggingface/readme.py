"""The header of `README.md`, a block of YAML: configurations, features, license."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tfrecreg.api import MissingExtraError, RawDataError, Storage, safe

README = "README.md"


@dataclass(frozen=True)
class Readme:
    """What the README says of a dataset."""

    header: Mapping[str, Any] = field(default_factory=dict)
    citation_line: int = 0
    """Line of the first BibTeX entry in its text, from 1; 0 for none."""

    def configs(self) -> list[Mapping[str, Any]]:
        """The configurations with their files."""
        return _mappings(self.header.get("configs"))

    def info(self, config: str) -> Mapping[str, Any]:
        """The `dataset_info` of a configuration; empty for none."""
        infos = _mappings(self.header.get("dataset_info"))
        named = [each for each in infos if str(each.get("config_name", "default")) == config]
        return named[0] if named else infos[0] if len(infos) == 1 else {}

    def examples(self, config: str) -> dict[str, int]:
        """The number of rows of each split, where it is told."""
        return {
            str(each["name"]): each["num_examples"]
            for each in _mappings(self.info(config).get("splits"))
            if each.get("name") and type(each.get("num_examples")) is int
        }

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
                text = ", ".join(map(str, value)) if isinstance(value, list) else str(value or "")
                if text.strip():
                    found[key] = safe(" ".join(text.split()), limit=200)
                    break
        if self.citation_line:
            found["citation"] = f"the BibTeX in {README}, line {self.citation_line}"
        return found


def read_readme(raw: Storage) -> Readme:
    """The README of a folder; an empty one if there is none, or it has no header."""
    found = raw.stat(README, follow="all")
    if found is None or found.kind != "file":
        return Readme()
    lines = raw.read(README).decode("utf-8-sig", "replace").splitlines()
    citation = next(
        (at for at, line in enumerate(lines, 1) if line.lstrip().startswith("@") and "{" in line),
        0,
    )
    if not lines or lines[0].rstrip() != "---":
        return Readme(citation_line=citation)
    ends = [at for at, line in enumerate(lines) if at and line.rstrip() == "---"]
    if not ends:
        raise _unusable("its header, which begins with `---`, does not end")
    return Readme(_parsed("\n".join(lines[1 : ends[0]])), citation)


def _parsed(text: str) -> Mapping[str, Any]:
    try:
        import yaml
    except ImportError:
        raise MissingExtraError(f"reading the header of `{README}`", "yaml") from None
    try:
        found = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        why = safe(" ".join(str(error).split()), limit=200)
        raise _unusable(f"its header is not YAML: {why}") from None
    if not isinstance(found or {}, dict):
        raise _unusable("its header should be a mapping")
    return found or {}


def _mappings(found: Any) -> list[Mapping[str, Any]]:
    every = found if isinstance(found, list) else [found]
    return [each for each in every if isinstance(each, dict)]


def _unusable(why: str) -> RawDataError:
    return RawDataError(
        f"`{README}` cannot be used: {why}",
        hint="correct its header, or remove the file from the raw folder: the features are then "
        "those of the Parquet files",
    )

"""The options of the source `webdataset`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, NamedTuple

from tfrecreg.api import safe

FieldType = Literal["int", "float", "text"]

_FIELD = re.compile(r"(?P<name>.+):(?P<type>int|float|text)", re.DOTALL)


class JsonField(NamedTuple):
    """A field of the member `json` that becomes a feature."""

    name: str
    type: FieldType

    @property
    def feature(self) -> str:
        """The name of its feature."""
        return f"json/{self.name}"


@dataclass(frozen=True)
class WebDatasetOptions:
    """What can be set with `--option`, and under `options` in `datasets/NAME.toml`."""

    splits: tuple[str, ...] = ()
    """Splits of the tar files, each as `SPLIT=PATTERN`: the first pattern that matches a path
    decides, and other tar files are left out. By default the names of the files decide.
    """
    suffixes: tuple[str, ...] = ()
    """Read only members with these suffixes, such as `jpg,cls`. By default all are read."""
    classes: str = ""
    """A file in the raw folder with the names of the classes: one per line, or JSON."""
    json_fields: tuple[str, ...] = ()
    """Fields of the member `json` that become features, each as `NAME:TYPE` with the type `int`,
    `float` or `text`, instead of the JSON as a whole.
    """
    npy: Literal["tensor", "bytes"] = "tensor"
    """How members `npy` are written: as a serialized tensor, or as the unchanged file."""
    keys: Literal["sample", "shard"] = "sample"
    """Keys of items: those of the samples, or with the path of the tar file before them, for
    samples whose numbers start again in each file.
    """
    restore: bool = True
    """Whether to restore the original records of a folder that `tfrecreg export` wrote."""

    def __post_init__(self) -> None:
        _ = self.fields

    @property
    def fields(self) -> tuple[JsonField, ...]:
        """The option `json_fields`."""
        found: dict[str, JsonField] = {}
        for text in self.json_fields:
            match = _FIELD.fullmatch(text)
            if match is None:
                raise ValueError(
                    f"`json_fields` expects NAME:TYPE with the type int, float or text, "
                    f"found `{safe(text)}`"
                )
            kind: FieldType = match["type"]  # type: ignore[assignment]  # by the pattern
            if match["name"] in found:
                raise ValueError(f"`json_fields` names `{safe(match['name'])}` twice")
            found[match["name"]] = JsonField(match["name"], kind)
        return tuple(found.values())

    def takes(self, suffix: str) -> bool:
        """Whether members with this suffix are read."""
        return not self.suffixes or suffix in {each.lower().lstrip(".") for each in self.suffixes}

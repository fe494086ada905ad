"""The options of the source `huggingface`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class HuggingFaceOptions:
    """What can be set with `--option`, and under `options` in `datasets/NAME.toml`."""

    config: str = ""
    """The configuration (subset) to read, as `README.md` names it, or a folder of Parquet files. By
    default the only one, or the one that the README calls the default.
    """
    splits: tuple[str, ...] = ()
    """Splits of the files, each as `SPLIT=PATTERN`: the first pattern that matches a path decides,
    and other files are left out. By default the README and the names of the files decide.
    """
    columns: tuple[str, ...] = ()
    """Read only these columns. By default all are read."""
    key: str = ""
    """The column of texts or integers whose values are the keys of the items. By default a key is
    the path of the file and the number of the row.
    """
    float64: Literal["exact", "round"] = "exact"
    """Handling of 64-bit floats that 32 bits do not hold exactly: refuse or round them."""
    restore: bool = True
    """Whether to restore the original records of a folder that `tfrecreg export` wrote."""

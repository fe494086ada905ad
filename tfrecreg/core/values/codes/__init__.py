"""The codes of findings. Pages in Markdown describe them.

A module imports its codes by name: ``from tfrecreg.core.values.codes import CRC002``. The import
fails if no page has the code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from tfrecreg.core.values.codes.pages import read_codes, tfdv_codes
from tfrecreg.core.values.findings import Code

PAGES: Mapping[str, str] = MappingProxyType(
    {
        "crc": "CRC",
        "shd": "SHD",
        "sch": "SCH",
        "inf": "INF",
        "src": "SRC",
        "dup": "DUP",
        "img": "IMG",
        "ann": "ANN",
        "qry": "QRY",
        "reg": "REG",
        "drf": "DRF",
        "tfdv": "SCH",
    }
)
"""The families of codes, in the order in which documents list them. Each family has a page."""


@cache
def codes_on(page: str) -> Mapping[str, Code]:
    return tfdv_codes() if page == "tfdv" else read_codes(page)


CORE_CODES: Mapping[str, Code] = MappingProxyType(
    {name: code for page in PAGES for name, code in codes_on(page).items()}
)
"""The codes of this package by name: ``CORE_CODES["CRC002"]``."""


class CodeList(Sequence[Code]):
    """The codes of this package that match one of the globs, in order of name."""

    def __init__(self, *globs: str) -> None:
        names = [name for name in CORE_CODES if any(fnmatchcase(name, glob) for glob in globs)]
        self._codes = [CORE_CODES[name] for name in sorted(names)]

    def __getitem__(self, index: Any) -> Any:
        return self._codes[index]

    def __len__(self) -> int:
        return len(self._codes)


class Former(NamedTuple):
    """A code that tfrecreg no longer uses. Manifests and ledgers of older builds may have it."""

    code: str
    became: tuple[str, ...]
    """The codes that replaced it: two if it was used for both skipped items and remarks."""
    about: str
    """The meaning of the former code. Findings with the new code repeat it in `detail`."""

    def __str__(self) -> str:
        return f"{self.code} became {' or '.join(self.became)}"


@cache
def former_codes() -> Mapping[str, Former]:
    lines = Path(__file__).with_name("former.txt").read_text("utf-8").splitlines()
    rows = [line.split(" ", 2) for line in lines]
    return {code: Former(code, tuple(became.split(",")), about) for code, became, about in rows}


def what_became_of(glob: str) -> str:
    """``; SRC002 became SRC110`` if former codes match the glob, else an empty text."""
    found = [str(each) for name, each in former_codes().items() if fnmatchcase(name, glob)]
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return f"; {', '.join(found[:3])}{more}" if found else ""


def __getattr__(name: str) -> Code:
    """Look up a code, so that ``from tfrecreg.core.values.codes import CRC002`` works."""
    try:
        return CORE_CODES[name]
    except KeyError:
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`") from None

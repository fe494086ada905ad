"""The codes of findings. Pages in Markdown describe them; a page is read when one of its codes is
needed.

A module imports its codes by name: ``from tfrecreg.core.values.codes import CRC002``. The import
reads the page of the code, and fails if the page does not have the code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache, cached_property
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


class _Catalog(Mapping[str, Code]):
    """All codes of this package by name. A look-up reads only the pages of the code's family."""

    def __getitem__(self, name: str) -> Code:
        for page, family in PAGES.items():
            if name.startswith(family) and name in codes_on(page):
                return codes_on(page)[name]
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        for page in PAGES:
            yield from codes_on(page)

    def __len__(self) -> int:
        return sum(len(codes_on(page)) for page in PAGES)


class CodeList(Sequence[Code]):
    """The codes of this package that match one of the globs, in order of name. The pages are read
    on the first use.
    """

    def __init__(self, *globs: str) -> None:
        self._globs = globs

    @cached_property
    def _codes(self) -> list[Code]:
        families = {glob[:3] for glob in self._globs}
        pages = [page for page, family in PAGES.items() if family in families]
        codes = [code for page in pages for code in codes_on(page).values()]
        matching = [
            each for each in codes if any(fnmatchcase(each.code, glob) for glob in self._globs)
        ]
        return sorted(matching, key=lambda code: code.code)

    def __getitem__(self, index: Any) -> Any:
        return self._codes[index]

    def __len__(self) -> int:
        return len(self._codes)


@cache
def codes_on(page: str) -> Mapping[str, Code]:
    return tfdv_codes() if page == "tfdv" else read_codes(page)


CORE_CODES: Mapping[str, Code] = _Catalog()
"""The codes of this package by name: ``CORE_CODES["CRC002"]``."""


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

"""The codes of findings. They are described in Markdown and read when a code is needed.

A module imports the codes it uses by name: ``from tfrecreg.core.values.codes import CRC002``. That
import reads the page, and fails if the page has no such code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any

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
"""The family of each page, in the order in which documents list them."""


class _Catalog(Mapping[str, Code]):
    """All bundled codes by name. Looking one up reads the pages of its family only."""

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
    """The bundled codes that match a glob, by name. The pages are read on the first use."""

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
    """The codes of a page by name."""
    return tfdv_codes() if page == "tfdv" else read_codes(page)


CORE_CODES: Mapping[str, Code] = _Catalog()
"""Code by name: ``CORE_CODES["CRC002"]``."""


def __getattr__(name: str) -> Code:
    """The code of that name, for ``from tfrecreg.core.values.codes import CRC002``."""
    try:
        return CORE_CODES[name]
    except KeyError:
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`") from None

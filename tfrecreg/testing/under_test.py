"""A plugin under test: by the name of an installed one, or by its class, which is not installed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tfrecreg.core.plugins.discovery import Announced
from tfrecreg.core.plugins.manager import plugins
from tfrecreg.core.plugins.records import PluginRecord
from tfrecreg.core.values.findings import Code

UNINSTALLED = "uninstalled"
"""Stands for the distribution of a class that a test names."""


@contextmanager
def under_test(
    kind: type[PluginRecord[Any]], plugin: str | type[Any], codes: Sequence[Code] = ()
) -> Iterator[Announced[Any]]:
    """The plugin, found by commands and functions while the block lasts.

    Args:
        kind: the class of its record.
        plugin: its name, or its class: then its name is that of the class's attribute `name`, or
            of the class itself in lower case.
        codes: its own codes, if it is a class; else its record has them.

    Raises:
        PluginError: it is not installed, or cannot be loaded.
    """
    known = plugins()
    if isinstance(plugin, str):
        yield known.find(kind, plugin)
        return
    name = str(getattr(plugin, "name", "") or re.sub(r"\W", "", plugin.__name__).lower())
    own = tuple(codes or getattr(plugin, "codes", ()))
    record = kind(name=name, summary=plugin.__name__, codes=own, load=lambda: plugin)
    announced = Announced(record, name, UNINSTALLED, "0", name, plugin.__module__)
    with known.lending(announced):
        yield announced

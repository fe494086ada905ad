"""The hooks that a plugin implements, by pluggy.

A plugin is a module with one or more of these functions, marked with ``hookimpl``, and an entry
point of the group ``tfrecreg`` that names the module::

    # lines_plugin.py
    from tfrecreg.api import SourceRecord, hookimpl

    @hookimpl
    def tfrecreg_sources():
        yield SourceRecord("lines", "one example a file of text", load_lines)

    def load_lines():
        from lines_source import Lines
        return Lines

    # pyproject.toml
    [project.entry-points.tfrecreg]
    lines = "lines_plugin"

The module is imported whenever plugins are listed, so it stays small: what costs time to import
is imported by the function that the record calls `load`.
"""

from __future__ import annotations

from collections.abc import Iterable

import pluggy

from tfrecreg.scan.interface import ValidatorRecord
from tfrecreg.sources.interface import SourceRecord

hookspec = pluggy.HookspecMarker("tfrecreg")

hookimpl = pluggy.HookimplMarker("tfrecreg")
"""Marks a function of a plugin as the implementation of the hook of the same name."""


@hookspec
def tfrecreg_sources() -> Iterable[SourceRecord]:
    """Announce sources: what turns one kind of raw dataset into examples.

    Yield (or return a list of) one :class:`~tfrecreg.api.SourceRecord` a source: its name
    (``[a-z][a-z0-9_]*``, what ``--source`` takes), one line that describes it, and a function
    without arguments that imports and returns the class. The class inherits
    from :class:`~tfrecreg.api.Source`; it is defined at the top level of a module, since worker
    processes find it by the module's name. Called once a process, and never for its side effects.
    """
    return ()


@hookspec
def tfrecreg_validators() -> Iterable[ValidatorRecord]:
    """Announce validators, which inspect records and yield findings.

    Yield (or return a list of) one :class:`~tfrecreg.api.ValidatorRecord` a validator: its name
    (``[a-z][a-z0-9_]*``, what ``--only`` and ``--skip`` take), one line that describes it, the
    :class:`~tfrecreg.api.Code` of every finding it may yield, so that ``explain`` and SARIF know
    them without loading it, and a function without arguments that imports and returns the class.
    The class inherits from :class:`~tfrecreg.api.Validator` or
    :class:`~tfrecreg.api.RecordValidator`; its visitors run in worker processes.
    """
    return ()

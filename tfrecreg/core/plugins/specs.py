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

The module is imported whenever plugins are listed, so it stays small: the function `load` of the
record does slow imports. A hook yields records, or returns a list of them; it is called once per
process, and never for its side effects. Every record has a name (``[a-z][a-z0-9_]*``), one line
that describes it, and a function without arguments that imports and returns the class. A class is
defined at the top level of a module, since worker processes find it by the module's name. A record
may also say which extra of its distribution it needs (``extra="parquet"``), and, with ``codes``,
which :class:`~tfrecreg.api.Code` are its own.
"""

from __future__ import annotations

from collections.abc import Iterable

import pluggy

from tfrecreg.core.plugins.records import (
    CommandRecord,
    DecoderRecord,
    EngineRecord,
    ExporterRecord,
    ReportFormatRecord,
    SourceRecord,
    ValidatorRecord,
)

hookspec = pluggy.HookspecMarker("tfrecreg")

hookimpl = pluggy.HookimplMarker("tfrecreg")
"""Marks a function of a plugin as the implementation of the hook of the same name."""


@hookspec
def tfrecreg_sources() -> Iterable[SourceRecord]:
    """Announce sources, which convert one kind of raw dataset to examples.

    The name is a value of ``--source``, and the class inherits from :class:`~tfrecreg.api.Source`.
    """
    return ()


@hookspec
def tfrecreg_validators() -> Iterable[ValidatorRecord]:
    """Announce validators, which inspect records and yield findings.

    The name is a value of ``--only`` and ``--skip``. The record has the
    :class:`~tfrecreg.api.Code` of every finding that the validator may yield, so that ``explain``
    and SARIF know them without loading it. The class inherits from
    :class:`~tfrecreg.api.Validator` or :class:`~tfrecreg.api.RecordValidator`; its visitors run in
    worker processes.
    """
    return ()


@hookspec
def tfrecreg_exporters() -> Iterable[ExporterRecord]:
    """Announce formats that ``export`` writes for other tools; the name is a value of ``--to``."""
    return ()


@hookspec
def tfrecreg_report_formats() -> Iterable[ReportFormatRecord]:
    """Announce formats in which `check` and `gate` write their reports.

    The name is a value of ``--format``, and the class inherits from
    :class:`~tfrecreg.api.ReportFormat`.
    """
    return ()


@hookspec
def tfrecreg_engines() -> Iterable[EngineRecord]:
    """Announce engines, which run tasks; the name is a value of ``--engine``."""
    return ()


@hookspec
def tfrecreg_commands() -> Iterable[CommandRecord]:
    """Announce commands: ``tfrecreg NAME``. `load` returns a command of click."""
    return ()


@hookspec
def tfrecreg_decoders() -> Iterable[DecoderRecord]:
    """Announce decoders of the bytes of features: how checks, training and pages read them.

    The class inherits from :class:`~tfrecreg.api.FeatureDecoder`.
    """
    return ()

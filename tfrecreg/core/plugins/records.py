"""The announcements of plugins: one record class for each kind of plugin.

A record is small, because it is made whenever plugins are listed. The function `load` imports what
is slow to import. It returns a class; for a command, it returns a click command.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

from tfrecreg.core.plugins.bundled import COMMANDS
from tfrecreg.core.values.findings import Code

if TYPE_CHECKING:
    from tfrecreg.core.build.sources.interface import Source
    from tfrecreg.core.check.scan.interface import Validator
    from tfrecreg.core.plugins.recognition import RawPreview, Recognition

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginRecord(Generic[T_co]):
    """The fields that all records have. Each subclass is for one kind of plugin."""

    name: str
    """``[a-z][a-z0-9_]*``."""
    summary: str
    """One line for ``plugins list``."""
    codes: Sequence[Code] = ()
    """The plugin's own codes, which ``explain``, SARIF and pages describe."""
    load: Callable[[], T_co]
    """Imports and returns the class. It is called only to use the plugin, not to list it."""
    extra: str | None = None
    """The extra of its distribution that `load` needs; None if it needs no extra."""

    kind: ClassVar[str] = "plugin"
    """The kind in words: ``report format``."""
    plural: ClassVar[str]
    """The key in a document for all plugins of the kind: ``report_formats``."""
    hook: ClassVar[str]
    """The hook that yields such records."""
    flag: ClassVar[str]
    """The command-line option that takes the name, for messages; empty if there is none."""
    methods: ClassVar[tuple[str, ...]] = ()
    """The methods and classes that a usable class must have."""
    is_class: ClassVar[bool] = True
    """Whether `load` returns a class."""
    taken: ClassVar[tuple[str, ...]] = ()
    """Names that belong to the core, which no plugin can have."""


@dataclass(frozen=True, slots=True)
class SourceRecord(PluginRecord["type[Source]"]):
    """How a plugin announces a source. ``--source`` accepts the source's name. The source's class
    extends `Source`.
    """

    name: str
    summary: str
    load: Callable[[], type[Source]]
    recognizes: Sequence[str] = ()
    """Globs such as ``annotations/*.json``, relative to the folder that ``--raw`` names. If a file
    in that folder matches a glob, hints name this source, and a build without ``--source``
    considers it: see `tfrecreg.core.build.detection.glob_strength`.
    """
    raw: str | None = None
    """Raw data to use if the user names none: a path relative to the registry's root, or ``.``."""
    examine: Callable[[RawPreview], Recognition | None] | None = None
    """Looks at a folder in which a file matches one of the globs, or at any folder if the source
    has no globs. Returns the reason why the source can read the folder, or None if it cannot. If
    `examine` is None, the globs decide.
    """

    refuses: Sequence[str] = ()
    """Globs of files that the source knows but does not read. If no source reads a folder with such
    a file, a build without ``--source`` asks this source, so that the user sees its reason.
    """

    kind = "source"
    plural = "sources"
    hook = "tfrecreg_sources"
    flag = "--source"
    methods = ("Options", "raw_files", "labels", "items", "example", "schema")


@dataclass(frozen=True, slots=True)
class ValidatorRecord(PluginRecord["type[Validator]"]):
    """How a plugin announces a validator. ``--only`` and ``--skip`` accept the validator's name.
    The validator's class extends `Validator` or `RecordValidator`.
    """

    name: str
    summary: str
    codes: Sequence[Code]
    """The codes of all its findings."""
    load: Callable[[], type[Validator]]
    runs_with: Literal["always", "baseline", "expected", "items", "limits", "asked"] = "always"
    """Which checks run the validator without ``--only``. ``always`` means every check, and
    ``asked`` means none. ``baseline`` means checks with ``--against``. ``expected`` means checks
    with ``--same-as`` or ``--expect``. ``items`` means checks with a source's items (``--source``).
    ``limits`` means checks whose gate has options for the validator.
    """
    reads_back: bool = False
    """Whether a new build must pass this validator before the new build replaces the old one."""
    needs_schema: bool = False
    """Whether it compares records with the schema. If so, it needs builds with a schema."""

    kind = "validator"
    plural = "validators"
    hook = "tfrecreg_validators"
    flag = "--only"
    methods = ("applies", "begin", "finish")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExporterRecord(PluginRecord["type[Any]"]):
    """How a plugin announces a format of ``export``. ``--to`` accepts the format's name."""

    kind = "exporter"
    plural = "exporters"
    hook = "tfrecreg_exporters"
    flag = "--to"
    methods = ("Options", "expect", "file_name", "begin", "verify", "finish", "how_to_read")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFormatRecord(PluginRecord["type[Any]"]):
    """How a plugin announces a format of reports. ``--format`` accepts the format's name. The class
    inherits from `ReportFormat`.
    """

    kind = "report format"
    plural = "report_formats"
    hook = "tfrecreg_report_formats"
    flag = "--format"
    methods = ("look", "render", "finish")
    taken = ("text", "json")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRecord(PluginRecord["type[Any]"]):
    """How a plugin announces an engine. ``--engine`` accepts the engine's name."""

    argument: str = ""
    """What follows ``NAME:``, as messages show it: ``MODULE:CALLABLE``. Empty if nothing
    follows."""

    kind = "engine"
    plural = "engines"
    hook = "tfrecreg_engines"
    flag = "--engine"
    methods = ("Options", "run", "executor")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRecord(PluginRecord[Any]):
    """How a plugin announces a command: `load` returns a command of click."""

    section: str = ""
    """The heading of its group in ``tfrecreg --help``; empty for ``Commands of plugins``."""

    kind = "command"
    plural = "commands"
    hook = "tfrecreg_commands"
    flag = ""
    is_class = False
    taken = tuple(COMMANDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderRecord(PluginRecord["type[Any]"]):
    """How a plugin announces a decoder of a feature's bytes. The class inherits from
    `FeatureDecoder`.
    """

    kind = "decoder"
    plural = "decoders"
    hook = "tfrecreg_decoders"
    flag = ""
    methods = ("reads", "array")


PLUGIN_KINDS: tuple[type[PluginRecord[Any]], ...] = (
    SourceRecord,
    ValidatorRecord,
    ExporterRecord,
    ReportFormatRecord,
    EngineRecord,
    CommandRecord,
    DecoderRecord,
)
"""All kinds of plugins, in the order of listings."""

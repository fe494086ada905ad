"""The announcements of plugins: one record class for each kind of plugin.

A record is small and is made whenever plugins are listed; the function `load` does slow imports. It
returns a class, or, for a command, the command of click.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

from tfrecreg.core.values.findings import Code

if TYPE_CHECKING:
    from tfrecreg.core.build.sources.interface import Source
    from tfrecreg.core.check.scan.interface import Validator
    from tfrecreg.core.plugins.recognition import RawPreview, Recognition

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginRecord(Generic[T_co]):
    """What all records have. The class of a record is the kind of its plugin."""

    name: str
    """``[a-z][a-z0-9_]*``."""
    summary: str
    """One line for ``plugins list``."""
    codes: Sequence[Code] = ()
    """The codes that are its own, which ``explain``, SARIF and pages describe."""
    load: Callable[[], T_co]
    """Imports and returns the class. Called when a command uses it, never for listings."""
    extra: str | None = None
    """The extra of its distribution without which `load` fails; None if it needs none."""

    kind: ClassVar[str]
    """The kind in words: ``report format``."""
    plural: ClassVar[str]
    """The key of all of the kind in a document: ``report_formats``."""
    hook: ClassVar[str]
    """The hook that yields such records."""
    flag: ClassVar[str]
    """What the name is given to on the command line, for messages; empty for the name alone."""
    methods: ClassVar[tuple[str, ...]] = ()
    """The methods without which a class cannot be used."""
    is_class: ClassVar[bool] = True
    """Whether `load` returns a class."""
    taken: ClassVar[tuple[str, ...]] = ()
    """Names that are the core's own, which no plugin can have."""
    has_options: ClassVar[bool] = False
    """Whether the class has a frozen dataclass `Options`."""


@dataclass(frozen=True, slots=True)
class SourceRecord(PluginRecord["type[Source]"]):
    """How a plugin announces a source, a value of ``--source``."""

    name: str
    summary: str
    load: Callable[[], type[Source]]
    recognizes: Sequence[str] = ()
    """Globs such as ``annotations/*.json``, from the folder that ``--raw`` names: if a file there
    matches one, hints say that the folder is for this source, and a build without ``--source``
    considers it: see `tfrecreg.core.build.detection.glob_strength`. Earlier sources come first.
    """
    raw: str | None = None
    """Its raw data where a user names none, from the registry's root: ``.`` for the registry."""
    examine: Callable[[RawPreview], Recognition | None] | None = None
    """Looks at a folder that matches one of the globs, or at any if there are none, and says why
    the source can read it; None if it cannot. Without it, the globs decide.
    """

    refuses: Sequence[str] = ()
    """Globs of files that the source knows and does not read: where no source reads a folder with
    such a file, a build without ``--source`` asks this one, so that its own reason is shown.
    """

    kind = "source"
    plural = "sources"
    hook = "tfrecreg_sources"
    flag = "--source"
    methods = ("raw_files", "labels", "items", "example", "schema")
    has_options = True


@dataclass(frozen=True, slots=True)
class ValidatorRecord(PluginRecord["type[Validator]"]):
    """How a plugin announces a validator, a value of ``--only`` and ``--skip``."""

    name: str
    summary: str
    codes: Sequence[Code]
    """The codes of all its findings."""
    load: Callable[[], type[Validator]]
    runs_with: Literal["always", "baseline", "expected", "items", "limits", "asked"] = "always"
    """When it runs without being named: with every check, with one that compares with a baseline
    (``--against``), with what is expected (``--same-as``, ``--expect``) or with the items of a
    source (``--source``), under a gate that has options for it, or never.
    """
    reads_back: bool = False
    """Whether a new build has to pass it before it replaces the old one."""
    needs_schema: bool = False
    """Whether it compares records with the schema: a build without one cannot be checked then."""

    kind = "validator"
    plural = "validators"
    hook = "tfrecreg_validators"
    flag = "--only"
    methods = ("applies", "begin", "finish")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExporterRecord(PluginRecord["type[Any]"]):
    """How a plugin announces a format of ``export``, a value of ``--to``."""

    kind = "exporter"
    plural = "exporters"
    hook = "tfrecreg_exporters"
    flag = "--to"
    methods = ("expect", "file_name", "begin", "verify", "finish", "how_to_read")
    has_options = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFormatRecord(PluginRecord["type[Any]"]):
    """How a plugin announces a format of reports, a value of ``--format``."""

    kind = "report format"
    plural = "report_formats"
    hook = "tfrecreg_report_formats"
    flag = "--format"
    methods = ("look", "render", "finish")
    taken = ("text", "json")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRecord(PluginRecord["type[Any]"]):
    """How a plugin announces an engine, a value of ``--engine``."""

    argument: str = ""
    """What follows the name and a colon, for messages: ``MODULE:CALLABLE``; empty for nothing."""

    kind = "engine"
    plural = "engines"
    hook = "tfrecreg_engines"
    flag = "--engine"
    methods = ("run", "executor")
    has_options = True


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRecord(PluginRecord[Any]):
    """How a plugin announces a command: `load` returns a command of click."""

    section: str = ""
    """The heading above it in ``tfrecreg --help``; empty for ``Commands of plugins``."""

    kind = "command"
    plural = "commands"
    hook = "tfrecreg_commands"
    flag = ""
    is_class = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderRecord(PluginRecord["type[Any]"]):
    """How a plugin announces a decoder of a feature's bytes."""

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

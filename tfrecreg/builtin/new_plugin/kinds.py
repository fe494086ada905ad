"""What differs between the kinds of plugins in the package of a new one."""

from __future__ import annotations

from dataclasses import dataclass

from tfrecreg.core.plugins.records import (
    CommandRecord,
    DecoderRecord,
    EngineRecord,
    ExporterRecord,
    PluginRecord,
    ReportFormatRecord,
    SourceRecord,
    ValidatorRecord,
)


@dataclass(frozen=True, slots=True)
class NewKind:
    """A kind of plugins."""

    record: type[PluginRecord[object]]
    summary: str
    """What the plugin of the template does."""
    base: str
    """The class that it inherits from; empty for a command."""
    call: str
    """The record that the hook yields."""
    use: str
    """A line of the README."""
    code: tuple[str, str, str] | None = None
    """Rule, summary and hint of its finding code; None without one."""

    @property
    def module(self) -> str:
        """The module of its class, and the name of its templates."""
        return self.record.kind.replace(" ", "_")


_BY_NAME = 'name="$name", summary="$summary", load=load'

NEW_KINDS = {
    "source": NewKind(
        SourceRecord,
        "texts in folders of labels",
        "Source",
        'SourceRecord("$name", "$summary", load, codes=[$code])',
        "Build with it: `tfrecreg build NAME --source $name --raw DIR`",
        (
            "unknown-folder",
            "A text is in a folder that names no split or no label",
            "move it, or add its label to the option `labels`",
        ),
    ),
    "validator": NewKind(
        ValidatorRecord,
        "texts that are too short",
        "RecordValidator",
        'ValidatorRecord("$name", "$summary", [$code], load)',
        "Run it alone: `tfrecreg check TARGET --only $name`",
        (
            "text-too-short",
            "A text has too few words",
            "look at the item that the key names; raise `shortest` no further than needed",
        ),
    ),
    "exporter": NewKind(
        ExporterRecord,
        "a line of base64 for each record",
        "RecordExporter",
        f"ExporterRecord({_BY_NAME})",
        "Export with it: `tfrecreg export TARGET DIR --to $name`",
    ),
    "report-format": NewKind(
        ReportFormatRecord,
        "a table of findings, as CSV",
        "ReportFormat",
        f"ReportFormatRecord({_BY_NAME})",
        "Report with it: `tfrecreg check TARGET --format $name`",
    ),
    "engine": NewKind(
        EngineRecord,
        "processes of the standard library",
        "RemoteEngine",
        f"EngineRecord({_BY_NAME})",
        "Run on it: `tfrecreg check TARGET --engine $name`",
    ),
    "command": NewKind(
        CommandRecord,
        "Name datasets without a release",
        "",
        f"CommandRecord({_BY_NAME})",
        "Run it: `tfrecreg $name`",
    ),
    "decoder": NewKind(
        DecoderRecord,
        "depth maps",
        "FeatureDecoder",
        f"DecoderRecord({_BY_NAME})",
        'Read with it: `tfrecreg.data_source(PATH, decode="FEATURE")`',
    ),
}
"""By the option that asks for it."""

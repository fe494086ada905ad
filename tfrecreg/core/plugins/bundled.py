"""The names of the bundled modules with hooks or commands. The modules are imported by these names.

Entry points would require a search of all installed distributions, and would not be found in a
checkout that is not installed. Nothing else imports these modules.
"""

from __future__ import annotations

OURS = "tfrecreg"
"""The distribution of the bundled plugins."""

SOURCES = (
    "coco",
    "folder",
    "huggingface",
    "imagefolder",
    "mnist",
    "table",
    "voc",
    "webdataset",
    "yolo",
)
"""The bundled sources except `tfrecreg`. Each is the package ``plugins/tfrecreg_<name>``."""

BUNDLED = (
    "tfrecreg.builtin.releases",
    "tfrecreg.builtin.derived",
    "tfrecreg.builtin.export",
    "tfrecreg.builtin.images",
    "tfrecreg.builtin.engines",
    "tfrecreg.builtin.query",
    "tfrecreg.builtin.reports",
    "tfrecreg.builtin.pages",
    "tfrecreg.core.terminal.plugin",
    "tfrecreg.builtin.validators",
    *(f"tfrecreg_{name}" for name in SOURCES),
)
"""Modules with hooks. Their names have the same form as in an entry point."""
DECODER = "tfrecreg.builtin.images.decoder:PictureDecoder"
"""The class of the bundled decoder, which is used without a search for plugins."""
LOCAL = "tfrecreg.builtin.local_plugins"
"""The module that finds local plugins, if a registry names any."""
CHANGES = "tfrecreg.builtin.releases.diff.verdict"
"""The module that describes in one line what a build changed since the previous version."""
PROGRESS = "tfrecreg.library.display"
"""The module that shows a program's progress: in a terminal, or in a notebook."""
DISABLE = "TFRECREG_DISABLE"
"""The environment variable with the plugins to switch off, separated by commas."""

_COMMANDS_BY_GROUP = {
    "Start here": {
        "demo": ("cli.demo", "Run the whole workflow on generated sample data"),
        "check": ("cli.check:", "Check builds, releases or any TFRecord files"),
        "report": ("builtin.pages.commands:", "Write a page that shows a dataset"),
        "view": ("builtin.view", "See every record in the browser"),
        "head": ("cli.head", "Show the first records"),
    },
    "Datasets": {
        "init": ("cli.init", "Turn a folder into a registry"),
        "build": ("cli.build", "Build a dataset's TFRecords from its raw data"),
        "adopt": ("builtin.adopt.command", "Make a build from TFRecords written by another tool"),
        "release": ("builtin.releases.commands:", "Freeze a build under a version number"),
        "list": ("builtin.look.commands:", "List the datasets of the registry"),
        "show": ("builtin.look.commands:", "Show a build or a release"),
        "log": ("builtin.look.commands:", "Show the history of a dataset"),
        "diff": ("cli.diff", "Compare two builds or releases, example by example"),
        "digest": ("builtin.look.commands:", "Print the content digest of each split"),
        "tag": ("builtin.releases.commands:", "Tag a release in git"),
        "yank": (
            "builtin.releases.commands:",
            "Mark a release as wrong, so that `latest` skips it",
        ),
    },
    "Verify": {
        "gate": ("cli.check:", "Judge the report of a check under today's gate and waivers"),
        "audit": (
            "builtin.releases.commands:",
            "Check the releases of datasets without reading their bytes",
        ),
        "repair": ("builtin.repair", "Rebuild missing and damaged files, byte for byte"),
        "salvage": ("builtin.salvage", "Write the undamaged records of damaged shards"),
        "explain": ("builtin.look.commands:", "Explain a finding code"),
    },
    "Ask": {
        "query": ("builtin.query.command", "Query records in SQL"),
        "stats": ("builtin.statistics.command", "Show the statistics of the features"),
        "schema": ("builtin.schemas.command", "Work with schemas"),
    },
    "Move": {
        "push": ("builtin.dvc.commands:", "Push the bytes of releases to a DVC remote"),
        "pull": ("builtin.dvc.commands:", "Fetch the bytes of releases to this machine"),
        "gc": ("builtin.dvc.commands:", "List or remove files that are no longer needed"),
        "export": ("builtin.export.command", "Export a build or a release for other tools"),
        "pipeline": ("builtin.dvc.commands:", "Write or update the stages of datasets in dvc.yaml"),
        "site": ("builtin.pages.commands:", "Write a static site of the registry"),
    },
    "Extend": {
        "plugins": ("cli.plugins", "List plugins, show their options, write new ones"),
        "completion": ("cli.completion", "Print the completion script for a shell"),
    },
}
"""Module below `tfrecreg` and summary of each command, in the groups and the order of ``--help``.
The command is the module's `command`, or its `<name>_command` if the module ends with a colon.
Packages outside ``tfrecreg.cli`` announce their features as plugins do.
"""
COMMANDS_BY_GROUP = {
    title: {
        name: (f"tfrecreg.{place}{name}_command" if place[-1] == ":" else f"tfrecreg.{place}", line)
        for name, (place, line) in group.items()
    }
    for title, group in _COMMANDS_BY_GROUP.items()
}
"""Place and summary of each command."""
PLUGIN_COMMANDS = {
    "new": ("tfrecreg.builtin.new_plugin", "Write the package of a new plugin"),
    "trust": (
        "tfrecreg.builtin.local_plugins",
        "Let the local plugins of this registry run on this machine",
    ),
}
"""Module and summary of the subcommands of `plugins` that are outside ``tfrecreg.cli``."""
COMMANDS = {name: each for group in COMMANDS_BY_GROUP.values() for name, each in group.items()}

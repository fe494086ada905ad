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
DECODERS = ("tfrecreg.builtin.images.decoder:PictureDecoder",)
"""Classes of the bundled decoders, which are used without a search for plugins."""
LOCAL = "tfrecreg.builtin.local_plugins"
"""The module that finds local plugins, if a registry names any."""
CHANGES = "tfrecreg.builtin.releases.diff.verdict"
"""The module that describes in one line what a build changed since the previous version."""
PROGRESS = "tfrecreg.library.display"
"""The module that shows a program's progress: in a terminal, or in a notebook."""
DISABLE = "TFRECREG_DISABLE"
"""The environment variable with the plugins to switch off, separated by commas."""

COMMANDS_BY_GROUP = {
    "Start here": {
        "demo": ("tfrecreg.cli.demo", "Run the whole workflow on generated sample data"),
        "check": (
            "tfrecreg.cli.check:check_command",
            "Check builds, releases or any TFRecord files",
        ),
        "report": (
            "tfrecreg.builtin.pages.commands:report_command",
            "Write a page that shows a dataset",
        ),
        "view": ("tfrecreg.builtin.view", "See every record in the browser"),
        "head": ("tfrecreg.cli.head", "Show the first records"),
    },
    "Datasets": {
        "init": ("tfrecreg.cli.init", "Turn a folder into a registry"),
        "build": ("tfrecreg.cli.build", "Build a dataset's TFRecords from its raw data"),
        "adopt": (
            "tfrecreg.builtin.adopt.command",
            "Make a build from TFRecords written by another tool",
        ),
        "release": (
            "tfrecreg.builtin.releases.commands:release_command",
            "Freeze a build under a version number",
        ),
        "list": (
            "tfrecreg.builtin.look.commands:list_command",
            "List the datasets of the registry",
        ),
        "show": ("tfrecreg.builtin.look.commands:show_command", "Show a build or a release"),
        "log": (
            "tfrecreg.builtin.look.commands:log_command",
            "Show the history of a dataset",
        ),
        "diff": ("tfrecreg.cli.diff", "Compare two builds or releases, example by example"),
        "digest": (
            "tfrecreg.builtin.look.commands:digest_command",
            "Print the content digest of each split",
        ),
        "tag": ("tfrecreg.builtin.releases.commands:tag_command", "Tag a release in git"),
        "yank": (
            "tfrecreg.builtin.releases.commands:yank_command",
            "Mark a release as wrong, so that `latest` skips it",
        ),
    },
    "Verify": {
        "gate": (
            "tfrecreg.cli.check:gate_command",
            "Judge the report of a check under today's gate and waivers",
        ),
        "audit": (
            "tfrecreg.builtin.releases.commands:audit_command",
            "Check the releases of datasets, without their bytes",
        ),
        "repair": (
            "tfrecreg.builtin.repair",
            "Rebuild missing and damaged files, byte for byte",
        ),
        "salvage": (
            "tfrecreg.builtin.salvage",
            "Write the undamaged records of damaged shards",
        ),
        "explain": (
            "tfrecreg.builtin.look.commands:explain_command",
            "Explain a finding code",
        ),
    },
    "Ask": {
        "query": ("tfrecreg.builtin.query.command", "Query records in SQL"),
        "stats": ("tfrecreg.builtin.statistics.command", "Show the statistics of the features"),
        "schema": ("tfrecreg.builtin.schemas.command", "Work with schemas"),
    },
    "Move": {
        "push": (
            "tfrecreg.builtin.dvc.commands:push_command",
            "Push the bytes of releases to a DVC remote",
        ),
        "pull": (
            "tfrecreg.builtin.dvc.commands:pull_command",
            "Fetch the bytes of releases to this machine",
        ),
        "gc": (
            "tfrecreg.builtin.dvc.commands:gc_command",
            "List or remove files that are no longer needed",
        ),
        "export": (
            "tfrecreg.builtin.export.command",
            "Export a build or a release for other tools",
        ),
        "pipeline": (
            "tfrecreg.builtin.dvc.commands:pipeline_command",
            "Write or update the stages of datasets in dvc.yaml",
        ),
        "site": (
            "tfrecreg.builtin.pages.commands:site_command",
            "Write a static site of the registry",
        ),
    },
    "Extend": {
        "plugins": ("tfrecreg.cli.plugins", "List plugins, show their options, write new ones"),
        "completion": ("tfrecreg.cli.completion", "Print the completion script for a shell"),
    },
}
"""Module and summary of each command, in the groups and the order of ``--help``. Packages outside
``tfrecreg.cli`` announce their features as plugins do.
"""
PLUGIN_COMMANDS = {
    "new": ("tfrecreg.builtin.new_plugin", "Write the package of a new plugin"),
    "trust": (
        "tfrecreg.builtin.local_plugins",
        "Let the local plugins of this registry run on this machine",
    ),
}
"""Module and summary of the subcommands of `plugins` that are outside ``tfrecreg.cli``."""
COMMANDS = {name: each for group in COMMANDS_BY_GROUP.values() for name, each in group.items()}

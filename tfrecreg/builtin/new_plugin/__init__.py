"""The command `tfrecreg plugins new`: it chooses free names and writes the files of a package."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import click

from tfrecreg.core.plugins.manager import plugins
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
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.session import Session, session_command
from tfrecreg.core.values.codes import PAGES
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import safe


@dataclass(frozen=True, slots=True)
class NewKind:
    """A kind of plugins."""

    record: type[PluginRecord[object]]
    help: str
    summary: str
    """What the generated plugin is about, in a few words."""
    use: str
    """The line of the README that shows how to use the plugin."""
    base: str = ""
    """The base class for the shared template; empty for kinds with a template of their own."""

    @property
    def module(self) -> str:
        """The name of the module that has the plugin's class. The names of the kind's templates
        begin with this name.
        """
        return self.record.kind.replace(" ", "_")


NEW_KINDS = {
    "source": NewKind(
        SourceRecord,
        "A source, which reads raw data (the default).",
        "texts in folders of labels",
        "Build with it: `tfrecreg build NAME --source $name --raw DIR`",
    ),
    "validator": NewKind(
        ValidatorRecord,
        "A validator, which checks records.",
        "texts that are too short",
        "Run it alone: `tfrecreg check TARGET --only $name`",
    ),
    "exporter": NewKind(
        ExporterRecord,
        "An exporter, for `export --to`.",
        "a line of base64 for each record",
        "Export with it: `tfrecreg export TARGET DIR --to $name`",
        "RecordExporter",
    ),
    "report-format": NewKind(
        ReportFormatRecord,
        "A report format, for `check --format`.",
        "a table of findings, as CSV",
        "Report with it: `tfrecreg check TARGET --format $name`",
        "ReportFormat",
    ),
    "engine": NewKind(
        EngineRecord,
        "An engine, for `--engine`.",
        "processes of the standard library",
        "Run on it: `tfrecreg check TARGET --engine $name`",
        "ExecutorEngine",
    ),
    "command": NewKind(
        CommandRecord,
        "A command, `tfrecreg NAME`.",
        "Name datasets without a release",
        "Run it: `tfrecreg $name`",
    ),
    "decoder": NewKind(
        DecoderRecord,
        "A decoder of the values of features.",
        "depth maps",
        'Read with it: `tfrecreg.data_source(PATH, decode="FEATURE")`',
        "FeatureDecoder",
    ),
}
"""Maps the name of an option to the kind of plugin that the option selects."""


def _kind_options(function: Callable[..., Any]) -> Callable[..., Any]:
    for name, kind in reversed(NEW_KINDS.items()):
        option = click.option(f"--{name}", name.replace("-", "_"), is_flag=True, help=kind.help)
        function = option(function)
    return function


@session_command("new")
@click.argument("name")
@_kind_options
@click.option(
    "--output",
    metavar="DIR",
    shell_complete=complete.folders,
    help="The folder to write. Default: tfrecreg-NAME.",
)
def command(session: Session, name: str, output: str | None, **kinds: bool) -> None:
    """Write the package of a new plugin.

    The package works as it is: code with options, tests, an entry point, a workflow for continuous
    integration. Change the code to what you need, and run the tests. Nothing is overwritten.
    """
    chosen = [kind for kind in NEW_KINDS if kinds[kind.replace("-", "_")]] or ["source"]
    if len(chosen) > 1:
        raise UsageError(f"{' and '.join(f'`--{each}`' for each in chosen)} exclude each other")
    written = write_package(name, NEW_KINDS[chosen[0]], output)
    if session.printed_json(written):
        return
    where = safe(written.folder, limit=1000)
    session.out.print(f"wrote the {written.kind} `{written.name}`, in {where}")
    for path in written.files:
        session.out.print(f"  {path}")
    session.err.print("next:")
    session.err.print(f"  pip install -e {safe(shlex.quote(f'{written.folder}[test]'))}")
    session.err.print(f"  pytest {safe(shlex.quote(written.folder))}")


_NAME = re.compile(r"[a-z][a-z0-9_]{0,59}")


@dataclass(frozen=True, slots=True)
class NewPackage:
    """The package that was written."""

    name: str
    kind: str
    folder: str
    files: list[str]


def write_package(name: str, kind: NewKind, folder: str | None) -> NewPackage:
    """Write the package of a plugin into a new folder."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"`{name}` is not a name of a plugin: expected a small letter, then small letters, "
            "digits and underscores"
        )
    if name in {*plugins().names(kind.record), *kind.record.taken}:
        raise UsageError(f"there is a {kind.record.kind} `{name}` already")
    words = _words(name, kind)
    root = Path(folder or words["distribution"])
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise UsageError(f"`{root}` exists and is not an empty folder")
    files = _files(kind, words)
    os.makedirs(root, exist_ok=True)  # noqa: PTH103 - as every folder that a user names
    storage = LocalStorage(root)
    for path, text in files.items():
        with storage.create(path) as file:
            file.write(text.encode("utf-8"))
    return NewPackage(name, kind.record.kind, str(root), sorted(files))


def _words(name: str, kind: NewKind) -> dict[str, str]:
    """The words that replace placeholders in templates."""
    # A code of three letters from the name, in no family of tfrecreg's.
    letters = re.sub(r"[^A-Z]", "X", name.upper().replace("_", "").ljust(3, "X")[:3])
    while letters in set(PAGES.values()):
        letters = letters[:2] + chr(ord("A") + (ord(letters[2]) - ord("A") + 1) % 26)
    parts = [part for part in name.split("_") if part]
    return {
        "name": name,
        "kind": kind.record.kind,
        "summary": kind.summary,
        "distribution": f"tfrecreg-{'-'.join(parts)}",
        "package": f"tfrecreg_{name}",
        "module": kind.module,
        "class_name": "".join(part[0].upper() + part[1:] for part in parts),
        "code": f"{letters}001",
        "hook": kind.record.hook,
        "record": kind.record.__name__,
        "base": kind.base,
        "use": Template(kind.use).substitute(name=name),
    }


def _files(kind: NewKind, words: dict[str, str]) -> dict[str, str]:
    """The text of each file, by its path."""
    package = f"src/{words['package']}"
    places = {
        "pyproject.toml": "pyproject.toml",
        "README.md": "README.md",
        ".github/workflows/test.yml": "test.yml",
        f"{package}/plugin.py": "plugin.py" if kind.base else f"{kind.module}_plugin.py",
        f"{package}/{kind.module}.py": f"{kind.module}.py",
        f"tests/test_{words['name']}.py": f"{kind.module}_test.py",
    }
    if kind.module == "source":
        places[f"{package}/{words['name']}.pbtxt"] = "schema.pbtxt"
    home = resources.files("tfrecreg.builtin.new_plugin") / "templates"
    files = {
        path: Template((home / f"{template}.txt").read_text("utf-8")).substitute(words)
        for path, template in places.items()
    }
    files[f"{package}/__init__.py"] = f'"""The {words["kind"]} `{words["name"]}` for tfrecreg."""\n'
    return files | {f"{package}/py.typed": ""}

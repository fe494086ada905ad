"""`tfrecreg plugins new`: names that fit, and the files of the package."""

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

from tfrecreg.core.plugins.bundled import COMMANDS
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

_KINDS = {
    "source": "A source, which reads raw data (the default).",
    "validator": "A validator, which checks records.",
    "exporter": "An exporter, for `export --to`.",
    "report-format": "A report format, for `check --format`.",
    "engine": "An engine, for `--engine`.",
    "command": "A command, `tfrecreg NAME`.",
    "decoder": "A decoder of the values of features.",
}


def _kind_options(function: Callable[..., Any]) -> Callable[..., Any]:
    for kind, text in reversed(_KINDS.items()):
        option = click.option(f"--{kind}", kind.replace("-", "_"), is_flag=True, help=text)
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
    chosen = [kind for kind in _KINDS if kinds[kind.replace("-", "_")]] or ["source"]
    if len(chosen) > 1:
        words = " and ".join(f"`--{each}`" for each in chosen)
        raise UsageError(f"{words} exclude each other", hint="a package is of one kind")
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
        "ExecutorEngine",
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


_NAME = re.compile(r"[a-z][a-z0-9_]{0,59}")
_CODE = """
$code = Code(
    code="$code",
    rule="$rule",
    severity=Severity.WARNING,
    summary="$code_summary",
    hint="$code_hint",
    page="Say here why it matters, and what to do.",
)
"""


@dataclass(frozen=True, slots=True)
class NewPackage:
    """What was written."""

    name: str
    kind: str
    folder: str
    files: list[str]


def write_package(name: str, kind: NewKind, folder: str | None) -> NewPackage:
    """Write the package of a plugin into a new folder."""
    _expect_name(name, kind)
    words = _words(name, kind)
    root = Path(folder or words["distribution"])
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise UsageError(
            f"`{safe(str(root), limit=1000)}` exists and is not an empty folder",
            hint="name another folder with --output DIR; nothing is overwritten",
        )
    files = dict(_files(kind, words))
    os.makedirs(root, exist_ok=True)  # noqa: PTH103 - as every folder that a user names
    storage = LocalStorage(root)
    for path, text in files.items():
        with storage.create(path) as file:
            file.write(text.encode("utf-8"))
    return NewPackage(name, kind.record.kind, str(root), sorted(files))


def _expect_name(name: str, kind: NewKind) -> None:
    what = kind.record.kind
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"`{safe(name, limit=80)}` is not a name of a plugin",
            hint="a small letter, then small letters, digits and underscores: `street_signs`",
        )
    known = plugins().names(kind.record)
    if name in known or name in kind.record.taken:
        raise UsageError(
            f"there is a {what} `{name}` already", hint="choose a name that no plugin has"
        )
    if kind.record is CommandRecord and name in COMMANDS:
        raise UsageError(
            f"`{name}` is a command of tfrecreg's own", hint="choose a name that no command has"
        )


def _words(name: str, kind: NewKind) -> dict[str, str]:
    """The words to replace in templates."""
    parts = [part for part in name.split("_") if part]
    class_name = "".join(part[0].upper() + part[1:] for part in parts)
    code = _code(name)
    words = {
        "name": name,
        "kind": kind.record.kind,
        "summary": kind.summary,
        "distribution": f"tfrecreg-{'-'.join(parts)}",
        "package": f"tfrecreg_{name}",
        "module": kind.module,
        "class_name": class_name if kind.base else "command",
        "code": code,
        "hook": kind.record.hook,
        "record": kind.record.__name__,
        "extra_import": "" if kind.base else "from typing import Any\n",
        "returns": f"type[{kind.base}]" if kind.base else "Any",
        "codes": "",
    }
    names = {"hookimpl", kind.record.__name__}
    if kind.base:
        names.add(kind.base)
    if kind.code is not None:
        rule, summary, hint = kind.code
        names |= {"Code", "Severity"}
        more = {"rule": rule, "code_summary": summary, "code_hint": hint}
        words["codes"] = Template(_CODE).substitute(words, **more)
    words["imports"] = ", ".join(sorted(names, key=lambda each: (each[0].islower(), each)))
    words["call"] = Template(kind.call).substitute(words)
    words["use"] = Template(kind.use).substitute(words)
    return words


def _code(name: str) -> str:
    """A code of three letters of the name, which no family of tfrecreg has."""
    letters = re.sub(r"[^A-Z]", "X", name.upper().replace("_", "").ljust(3, "X")[:3])
    while letters in set(PAGES.values()):
        letters = letters[:2] + chr(ord("A") + (ord(letters[2]) - ord("A") + 1) % 26)
    return f"{letters}001"


def _files(kind: NewKind, words: dict[str, str]) -> list[tuple[str, str]]:
    package = f"src/{words['package']}"
    places = {
        "pyproject.toml": "pyproject.toml",
        "README.md": "README.md",
        ".github/workflows/test.yml": "test.yml",
        f"{package}/plugin.py": "plugin.py",
        f"{package}/{kind.module}.py": f"{kind.module}.py",
        f"tests/test_{words['name']}.py": f"{kind.module}_test.py",
    }
    if kind.module == "source":
        places[f"{package}/{words['name']}.pbtxt"] = "schema.pbtxt"
    files = [(path, _filled(template, words)) for path, template in places.items()]
    about = f'"""The {words["kind"]} `{words["name"]}` for tfrecreg."""\n'
    return [*files, (f"{package}/__init__.py", about), (f"{package}/py.typed", "")]


def _filled(template: str, words: dict[str, str]) -> str:
    home = resources.files("tfrecreg.builtin.new_plugin")
    text = (home / "templates" / f"{template}.txt").read_text("utf-8")
    return Template(text).substitute(words)

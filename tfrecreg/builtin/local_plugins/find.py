"""From the files that a registry names to announced records.

A file has either hooks, as the module of a distribution, or classes: each source and each validator
that it defines is announced by its attribute `name`, or by the name of its class.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from functools import cache
from inspect import isabstract
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any

from tfrecreg.builtin.local_plugins.code import LocalCode, read_code
from tfrecreg.builtin.local_plugins.trust import is_trusted
from tfrecreg.config import CONFIG_NAME
from tfrecreg.entry_points import Broken
from tfrecreg.errors import PluginError, UnknownPluginError, UntrustedPluginError, UsageError
from tfrecreg.guard import PluginId, calling, place_of
from tfrecreg.plugins import discovery
from tfrecreg.plugins.discovery import Announced, BrokenPlugin, checked_record, records_of
from tfrecreg.plugins.records import (
    ExporterRecord,
    PluginRecord,
    SourceRecord,
    ValidatorRecord,
)
from tfrecreg.scan.interface import Validator
from tfrecreg.sources.interface import Source
from tfrecreg.suggest import did_you_mean, listed
from tfrecreg.text import safe

_KINDS = (SourceRecord, ValidatorRecord, ExporterRecord)
"""What a local plugin may be: others are found without a registry."""


def local_plugins(
    home: str, patterns: Sequence[str], *, untrusted: bool
) -> list[Announced[Any] | BrokenPlugin]:
    """What the files of ``[plugins] local`` announce."""
    found: list[Announced[Any] | BrokenPlugin] = []
    for path in local_files(home, patterns):
        try:
            code = _trusted(home, path)
        except UntrustedPluginError:
            if not untrusted:
                raise
            reason = "not trusted on this machine: tfrecreg plugins trust"
            found.append(BrokenPlugin(path, f"./{path}", "", reason))
            continue
        found += _announced(code, path)
    return found


def local_plugin(home: str, kind: type[PluginRecord[Any]], word: str) -> Announced[Any]:
    """The plugin that a word names: ``./sources/yolo.py:Yolo``."""
    name = word.rpartition(":")[2] if ":" in word else ""
    path = local_path(home, word)
    found = _announced(_trusted(home, path), path)
    for each in found:
        if isinstance(each, BrokenPlugin):
            raise PluginError(
                f"the local plugin `./{safe(path)}` is broken: {each.reason}",
                hint="correct the file, and run the command again",
            )
    matching = [
        each
        for each in found
        if isinstance(each, Announced) and isinstance(each.record, kind) and each.name == name
    ]
    if matching:
        return matching[0]
    names = [each.name for each in found if isinstance(each, Announced)]
    lacks = f"has no {kind.kind} `{safe(name, limit=60)}`{did_you_mean(name, names)}"
    raise UnknownPluginError(
        f"`./{safe(path)}` {lacks if name else 'is a file: name the class in it, too'}",
        hint=f"available: {listed(names)}" if names else "a source is a subclass of `Source`",
    )


def local_files(home: str, patterns: Sequence[str]) -> list[str]:
    """The files that globs name, relative to the registry, in order."""
    found: dict[str, None] = {}
    for pattern in patterns:
        names = sorted(glob.glob(pattern, root_dir=home, recursive=False))
        paths = [name for name in names if name.endswith(".py")]
        if not paths:
            raise UsageError(
                f"`{CONFIG_NAME}`: `plugins.local` names `{safe(pattern)}`, and no file matches",
                hint="a glob of `.py` files, from the registry's folder: `checks/*.py`",
            )
        found.update(dict.fromkeys(local_path(home, each) for each in paths))
    return list(found)


def local_path(home: str, path: str) -> str:
    """The path of the file that a word or a path names, relative to the registry, without links."""
    path = (path.rpartition(":")[0] or path).removeprefix("./")
    root = os.path.realpath(home)
    full = os.path.realpath(os.path.join(root, path))  # noqa: PTH118 - a text
    if not Path(full).is_relative_to(root):
        raise UsageError(
            f"the local plugin `./{safe(path)}` is outside of the registry `{safe(root)}`",
            hint="put the file into the registry, or make a distribution of it",
        )
    if not full.endswith(".py") or not Path(full).is_file():
        raise UsageError(
            f"there is no local plugin `./{safe(path)}` in `{safe(root)}`",
            hint="a local source is named as ./FOLDER/FILE.py:CLASS, from the registry's folder",
        )
    return PurePosixPath(os.path.relpath(full, root)).as_posix()


def _trusted(home: str, path: str) -> LocalCode:
    code = read_code(os.path.join(os.path.realpath(home), os.path.dirname(path)))  # noqa: PTH118, PTH120
    if not is_trusted(code.folder):
        raise UntrustedPluginError(
            f"the local plugin `./{safe(path)}` is not trusted on this machine, so it does not run",
            hint="read it, then: tfrecreg plugins trust",
        )
    return code


@cache
def _announced(code: LocalCode, path: str) -> tuple[Announced[Any] | BrokenPlugin, ...]:
    name = PurePosixPath(path).name
    plugin_id = PluginId("local plugin", name, f"./{path}", code.digest)
    try:
        with calling(plugin_id, "import"):
            module = code.load(name)
            records = list(_records(module))
    except Exception as error:
        return (BrokenPlugin(path, f"./{path}", code.digest, discovery.reason(error)),)
    return tuple(
        Announced(each, each.name, f"./{path}", code.digest, path, f"./{path}") for each in records
    )


def _records(module: ModuleType) -> Iterator[PluginRecord[Any]]:
    hooks = [each for each in vars(module).values() if hasattr(each, "tfrecreg_impl")]
    if not hooks:
        yield from _of_classes(module)
        return
    for record in records_of(module):
        if not isinstance(record, _KINDS):
            raise Broken(
                f"announces the {record.kind} `{safe(record.name)}`: expected a source, a "
                "validator or an exporter, others need a distribution"
            )
        yield record


def _of_classes(module: ModuleType) -> Iterator[PluginRecord[Any]]:
    found = False
    for name, kind in vars(module).items():
        if not isinstance(kind, type) or kind.__module__ != module.__name__ or name[0] == "_":
            continue
        if isabstract(kind):
            missing = sorted(getattr(kind, "__abstractmethods__", ()))
            if issubclass(kind, Source | Validator):
                lacks = f"the class `{name}` has no {listed(missing, word='or')}"
                raise Broken(f"{lacks}{place_of(kind)}")
            continue
        record: PluginRecord[Any]
        summary = (kind.__doc__ or name).strip().splitlines()[0].rstrip(".")
        codes = tuple(getattr(kind, "codes", ()))
        if issubclass(kind, Source):
            own = str(getattr(kind, "name", name))
            record = SourceRecord(own, summary, _loads(kind), codes=codes)
        elif issubclass(kind, Validator):
            own = str(getattr(kind, "name", ""))
            record = ValidatorRecord(own, summary, codes, _loads(kind))
        else:
            continue
        found = True
        try:
            yield checked_record(record, any_name=issubclass(kind, Source))
        except Broken as error:
            raise Broken(f"{error}{place_of(kind)}") from None
    if not found:
        raise Broken("has no hook, and no class that is a source or a validator")


def _loads(kind: type[Any]) -> Any:
    return lambda: kind

"""Finds what a registry's plugin files announce, and implements `tfrecreg plugins trust`.

A file has hooks or classes. Hooks work as in the module of a distribution. In a file with classes,
each source and validator is announced under its attribute `name`, or else its class name. All files
in one folder belong to one package below this module. The package is named after the folder and the
digest of its files, so a worker process that unpickles an object of a local plugin imports the same
code, or fails.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
import sys
from collections.abc import Iterator, Sequence
from functools import cache, partial
from glob import glob
from importlib import import_module
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import click
from blake3 import blake3

from tfrecreg.core.build.sources.interface import Source
from tfrecreg.core.check.scan.interface import Validator
from tfrecreg.core.plugins import manager
from tfrecreg.core.plugins.guard import calling
from tfrecreg.core.plugins.manager import Announced, BrokenPlugin, check_record, records_of
from tfrecreg.core.plugins.records import PluginRecord, SourceRecord, ValidatorRecord
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.terminal.session import Session, session_command
from tfrecreg.core.values.config import CONFIG_NAME
from tfrecreg.core.values.errors import UntrustedPluginError, UsageError
from tfrecreg.core.values.text import safe

_MODULE = re.compile(rf"(?s){re.escape(__name__)}\.f((?:[0-9a-f]{{2}})+)_([0-9a-f]+)(?:\.(.+))?")
"""The name of a package of local plugins, or of a module in it."""
_TRUSTED = "trusted.json"
"""File below `XDG_STATE_HOME` that lists the registries whose plugins may run here."""


def local_plugins(
    home: str, patterns: Sequence[str], *, untrusted: bool
) -> list[Announced[Any] | BrokenPlugin]:
    """The plugins in the files of ``[plugins] local``, and the files that are broken."""
    found: list[Announced[Any] | BrokenPlugin] = []
    for path in _files(home, patterns):
        file = Path(home, path).resolve()
        if is_trusted(file):
            found += _announced(file, path, code_digest(str(file.parent)))
        elif untrusted:
            reason = "not trusted on this machine: tfrecreg plugins trust"
            found.append(BrokenPlugin(path, f"./{path}", "", reason))
        else:
            raise UntrustedPluginError(
                f"the local plugin `./{path}` is not trusted on this machine, so it does not run",
                hint="read it, then: tfrecreg plugins trust",
            )
    return found


def _files(home: str, patterns: Sequence[str]) -> list[str]:
    """The paths, relative to the registry, of files that match a glob, without repetition."""
    found: dict[str, None] = {}
    for pattern in patterns:
        paths = [each for each in sorted(glob(pattern, root_dir=home)) if each.endswith(".py")]
        if not paths:
            raise UsageError(
                f"`{CONFIG_NAME}`: `plugins.local` names `{pattern}`, but no file matches"
            )
        found.update(dict.fromkeys(map(posixpath.normpath, paths)))
    return list(found)


def is_trusted(place: Path) -> bool:
    """Whether this user trusts the plugins of the registry that contains this file or folder."""
    return any(place.is_relative_to(each) for each in _trusted())


def change_trust(registry: str, *, trusted: bool) -> None:
    """Trust the plugins in a registry, or stop trusting them."""
    root = os.path.realpath(registry)
    found = {*_trusted()} - {root} | ({root} if trusted else set())
    text = json.dumps({"format_version": 2, "registries": sorted(found)}, indent=2)
    with LocalStorage(_folder()).create(_TRUSTED) as file:
        file.write(f"{text}\n".encode("utf-8", "surrogateescape"))


def _trusted() -> list[str]:
    try:
        return [str(each) for each in json.loads((_folder() / _TRUSTED).read_bytes())["registries"]]
    except (OSError, ValueError, TypeError, KeyError):
        return []  # no list, or a damaged one, trusts nothing


def _folder() -> Path:
    base = os.environ.get("XDG_STATE_HOME", "")
    if not Path(base).is_absolute():
        base = os.path.expanduser("~/.local/state")  # noqa: PTH111 - never raises
    return Path(base, "tfrecreg")


@cache
def code_digest(folder: str) -> str:
    """The digest of the Python files in a folder, as 16 hex digits. Reads them once per process."""
    hasher, storage = blake3(b"tfrecreg local code v1\n"), LocalStorage(folder)
    for path in sorted(Path(folder).glob("*.py")):
        data = storage.read(path.name)
        hasher.update(os.fsencode(path.name) + b"\0%d\n" % len(data) + data)
    return hasher.hexdigest()[:16]


@cache
def _announced(file: Path, path: str, digest: str) -> tuple[Announced[Any] | BrokenPlugin, ...]:
    package = f"{__name__}.f{os.fsencode(file.parent).hex()}_{digest}"
    try:
        with calling():
            module = import_module(f"{package}.{file.stem}")
            has_hooks = any(hasattr(each, manager.MARK) for each in vars(module).values())
            records = list(records_of(module) if has_hooks else _of_classes(module))
    except Exception as error:
        return (BrokenPlugin(path, f"./{path}", digest, manager.reason(error)),)
    return tuple(
        Announced(each, each.name, f"./{path}", digest, path, f"./{path}") for each in records
    )


def _of_classes(module: ModuleType) -> Iterator[PluginRecord[Any]]:
    for name, kind in vars(module).items():
        if not isinstance(kind, type) or kind.__module__ != module.__name__ or name[0] == "_":
            continue
        summary = (kind.__doc__ or name).strip().splitlines()[0].rstrip(".")
        own, codes = str(getattr(kind, "name", name)), tuple(getattr(kind, "codes", ()))
        for base, record_class in ((Source, SourceRecord), (Validator, ValidatorRecord)):
            if issubclass(kind, base):
                load = partial(getattr, module, name)
                record = record_class(name=own, summary=summary, codes=codes, load=load)
                check_record(record, any_name=base is Source)
                yield record


class _Finder:
    """Lets Python import the modules of local plugins, in any process."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """The module with that name; None if it does not belong to a local plugin."""
        del path, target
        match = _MODULE.fullmatch(name)
        if match is None:
            return None
        place, digest, module = match.groups()
        folder = Path(os.fsdecode(bytes.fromhex(place)))
        if not is_trusted(folder) or code_digest(str(folder)) != digest:
            raise ImportError(f"`{safe(str(folder))}` is not trusted here, or has changed")
        if module:
            file = str(folder / f"{module}.py")
            return spec_from_file_location(name, file, loader=_Loader(name, file))
        return ModuleSpec(name, None, is_package=True)


class _Loader(SourceFileLoader):
    """Always compiles the source, because Python's caches check only a file's time and size."""

    def get_code(self, fullname: str) -> CodeType:
        del fullname
        code: CodeType = compile(self.get_data(self.path), self.path, "exec", dont_inherit=True)
        return code


sys.meta_path.insert(0, _Finder)


@session_command("trust")
@click.option("--revoke", is_flag=True, help="Stop trusting the registry.")
def command(session: Session, revoke: bool) -> None:
    """Let the local plugins of this registry run on this machine.

    Local plugins are the files that `[plugins] local` names. They run with your rights, so read
    them first. Trust applies to one folder: a clone of the registry in another folder is not
    trusted.
    """
    home = session.open().storage.root
    change_trust(home, trusted=not revoke)
    if not session.printed_json({"registry": home, "trusted": not revoke}):
        verb = "no longer trusted" if revoke else "trusted"
        session.out.print(f"the local plugins of this registry are {verb} on this machine")

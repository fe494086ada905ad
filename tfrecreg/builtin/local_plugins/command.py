"""`tfrecreg plugins trust`."""

from __future__ import annotations

import os
from dataclasses import dataclass

import click

from tfrecreg.commands import complete
from tfrecreg.commands.session import Session, session_command
from tfrecreg.errors import UsageError
from tfrecreg.text import safe


@dataclass(frozen=True, slots=True)
class TrustedFolder:
    """A folder of local plugins, as `plugins trust` shows it."""

    folder: str
    """Relative to the registry."""
    files: list[str]
    code: str
    """Digest of its Python files."""
    trusted: str
    """``as it is``, ``always`` or ``no``."""


@session_command("trust")
@click.argument("files", metavar="[FILE]..", nargs=-1, shell_complete=complete.folders)
@click.option("--always", is_flag=True, help="Trust the folder with all later changes.")
@click.option("--revoke", is_flag=True, help="Stop trusting the folder.")
def command(session: Session, files: tuple[str, ...], always: bool, revoke: bool) -> None:
    """Let local plugins run on this machine.

    FILE is a path from the registry's folder. All Python files in its folder are trusted in their
    current state: read them first, and run the command again after changes. Without a FILE, it
    trusts the folders of all local plugins that the registry names.
    """
    from tfrecreg.builtin.local_plugins import trust
    from tfrecreg.builtin.local_plugins.code import read_code
    from tfrecreg.builtin.local_plugins.find import local_files, local_path

    if always and revoke:
        raise UsageError("`--always` and `--revoke` exclude each other", hint="leave out one")
    registry = session.open()
    home, config = registry.storage.root, registry.config
    paths = [local_path(home, each) for each in files]
    if not files:
        named = (each.source or "" for each in config.datasets.values())
        paths = local_files(home, config.plugins.local)
        paths += [local_path(home, each) for each in named if each.startswith("./")]
    if not paths:
        raise UsageError(
            "the registry names no local plugin",
            hint='`source = "./sources/yolo.py:Yolo"` in datasets/NAME.toml, or `[plugins] local`',
        )
    folders = sorted({os.path.dirname(each) for each in paths})  # noqa: PTH120 - of a text
    codes = {each: read_code(os.path.join(home, each)) for each in folders}  # noqa: PTH118
    before, wanted, found = trust.trusted_folders(), dict[str, str | None](), []
    for folder, code in codes.items():
        stays = always or before.get(code.folder) == trust.ALWAYS
        how = "no" if revoke else trust.ALWAYS if stays else "as it is"
        wanted[code.folder] = None if revoke else trust.ALWAYS if stays else code.digest
        found.append(TrustedFolder(folder or ".", sorted(code.files), code.digest, how))
    trust.change(wanted, registry=home)
    if session.printed_json({"folders": found}):
        return
    for each in found:
        verb = "trusted no longer" if revoke else f"trusted {each.trusted}"
        names = safe(", ".join(each.files), limit=400)
        session.out.print(f"{safe(each.folder)}: {verb}, code {each.code} ({names})")

"""Tables of datasets in `tfrecreg.toml`, as older versions wrote them, become files of their own.

The text is cut at the headers of its tables, so that comments go where their tables go. Where that
does not come to the same values, as with inline tables, values are written without their comments.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from typing import Any

from tfrecreg.config import CONFIG_NAME, parse_config, parse_dataset
from tfrecreg.errors import ConfigError
from tfrecreg.registry import layout
from tfrecreg.registry.lock import locked_registry
from tfrecreg.registry.registry import Registry
from tfrecreg.toml_files import read_toml, same_values, update_toml

_HEADER = re.compile(r"\s*\[[^#]*\]\s*(#.*)?")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_OLD_LICENSE = re.compile(r"^licence(?=\s*=)", re.MULTILINE)


def move_tables(registry: Registry) -> list[str]:
    """Move every table `[datasets.<name>]` to `datasets/<name>.toml`; the paths of these files.

    A run that was killed has written some of the files and left the tables: the next one goes on.

    Raises:
        ConfigError: a table is wrong, or a file is there that says something else.
        StorageError: the registry cannot be written.
    """
    storage = registry.storage
    if storage.stat(CONFIG_NAME, follow="all") is None or not _tables(storage.read(CONFIG_NAME)):
        return []
    with locked_registry(registry):
        text = storage.read(CONFIG_NAME).decode("utf-8")
        config = parse_config(text)
        files, rest = split_tables(text)
        for name in files:
            path = layout.dataset_path(name)
            if storage.stat(path) is None:
                continue
            if parse_dataset(storage.read(path), path) != config.datasets[name]:
                raise ConfigError(
                    f"`{name}` is configured twice, with differences: in `{path}`, and in "
                    f"`{CONFIG_NAME}` by `[datasets.{name}]`",
                    hint="keep the right one and remove the other",
                )
        for path, content in [
            *((layout.dataset_path(name), files[name]) for name in files),
            (CONFIG_NAME, rest),
        ]:
            with storage.create(path) as writer:
                writer.write(content.encode("utf-8"))
    return [layout.dataset_path(name) for name in files]


def _tables(text: str | bytes) -> dict[str, Any]:
    tables = read_toml(text, CONFIG_NAME).get("datasets", {})
    return tables if isinstance(tables, dict) else {}


def split_tables(text: str) -> tuple[dict[str, str], str]:
    """The text of a file for each dataset, by name, and the rest of `tfrecreg.toml`.

    Raises:
        ConfigError: it is not TOML.
    """
    values = read_toml(text, CONFIG_NAME)
    tables = values.pop("datasets")
    files, rest = _cut(text)
    for name, table in tables.items():
        files.setdefault(name, "")
        if "licence" in table and "license" not in table:
            table["license"] = table.pop("licence")
            files[name] = _OLD_LICENSE.sub("license", files[name], count=1)
        if not _says(files[name], table):
            files[name] = update_toml("", layout.dataset_path(name), table)
    if not _says(rest, values):
        import tomlkit

        document = tomlkit.parse(text)
        document.remove("datasets")
        rest = tomlkit.dumps(document)
    return {name: files[name] for name in tables}, rest


def _says(text: str, values: dict[str, Any]) -> bool:
    try:
        return same_values(read_toml(text, CONFIG_NAME), values)
    except ConfigError:
        return False


def _cut(text: str) -> tuple[dict[str, str], str]:
    """The text cut at headers: of the tables of each dataset, and the rest."""
    parts: dict[str | None, list[str]] = defaultdict(list)
    owner: str | None = None
    above: list[str] = []
    """Comments that may belong to the header below them."""
    for line in text.removeprefix("\ufeff").splitlines(keepends=True):
        if line.lstrip().startswith("#"):
            above.append(line)
            continue
        header = _HEADER.match(line)
        keys = _keys(line) if header else []
        if header and keys:
            is_dataset = keys[0] == "datasets" and len(keys) > 1
            owner = keys[1] if is_dataset else None
            if is_dataset:
                line = _header_below(keys[2:], header[1] or "") + line[len(line.rstrip()) :]
        parts[owner] += [*above, line]
        above = []
    parts[owner] += above
    rest = "".join(parts.pop(None, []))
    return {str(name): _trimmed("".join(lines)) for name, lines in parts.items()}, _trimmed(rest)


def _keys(header: str) -> list[str]:
    """The keys of a table's header; empty where the line is not one."""
    try:
        table: Any = read_toml(header, CONFIG_NAME)
    except ConfigError:
        return []
    keys = []
    while isinstance(table, dict) and len(table) == 1:
        key, table = next(iter(table.items()))
        keys.append(key)
    return keys


def _header_below(keys: list[str], comment: str) -> str:
    """The header in a dataset's file, with the comment after it; without keys, that alone."""
    dotted = ".".join(key if _BARE_KEY.fullmatch(key) else json.dumps(key) for key in keys)
    return f"[{dotted}] {comment}".rstrip() if keys else comment.rstrip()


def _trimmed(text: str) -> str:
    stripped = text.strip("\r\n")
    return f"{stripped}\n" if stripped else ""

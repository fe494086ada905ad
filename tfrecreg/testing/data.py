"""Makes records for tests and examples: from a source, in a shard, or in a build.

Also draws digits as raw data for the source `mnist`. For the tests of any source, it copies raw
data, and adds damage or files with strange names.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import tfrecreg
from tfrecreg.cli import digits
from tfrecreg.core.build.sources.interface import Item, RawFile, Skipped
from tfrecreg.core.example.decode import decode
from tfrecreg.core.example.model import Example, encode
from tfrecreg.core.plugins.manager import plugins
from tfrecreg.core.records.framing import frame
from tfrecreg.core.registry import layout
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import UsageError


def examples(
    source: str, raw: str | os.PathLike[str], options: Sequence[str] | Mapping[str, Any] = ()
) -> Iterator[tuple[Item, Example | Skipped]]:
    """Yield each item in the order of the listing, with the example that a build would write.

    Args:
        source: the name of an installed source, as for ``--source``.
        raw: the folder of the raw data.
        options: the source's options, as for ``--option`` (``["lowercase=yes"]``), or as Python
            values (``{"lowercase": True}``).

    Raises:
        PluginError: the source does not exist, or fails.
        UsageError: an option is wrong, or the source cannot read the raw data.
    """
    known = plugins()
    opened = known.open_source(
        source, LocalStorage(os.fspath(raw)), known.source_options(source, options)[0]
    )
    for entry in opened.items():
        if isinstance(entry, Skipped):
            yield Item(entry.split, entry.key, 0), entry
        elif isinstance(entry, Item):
            made = opened.record(entry, {})
            yield entry, made if isinstance(made, Skipped) else decode(made.payload)


def write_shard(path: str | os.PathLike[str], records: Iterable[Mapping[str, Any]]) -> None:
    """Write a TFRecord file of examples, in order.

    Args:
        records: dictionaries from feature name to value, as for :func:`tfrecreg.to_example`.

    Raises:
        UsageError: an example cannot hold a value.
        StorageError: the file cannot be written.
    """
    write_payloads(path, (encode(tfrecreg.to_example(each)) for each in records))


def write_payloads(path: str | os.PathLike[str], payloads: Iterable[bytes]) -> None:
    """Write a TFRecord file of any payloads, in order."""
    folder, name = os.path.split(os.path.abspath(path))  # noqa: PTH100 - a storage takes texts
    with LocalStorage(folder).create(name) as file:
        for payload in payloads:
            before, behind = frame(payload)
            file.write(before + payload + behind)


def build_examples(
    folder: str | os.PathLike[str],
    splits: Mapping[str, Sequence[Mapping[str, Any]]],
    *,
    name: str = "small",
    keys: Mapping[str, Sequence[str]] | None = None,
    labels: Mapping[str, Sequence[str]] | None = None,
    schema: str | None = None,
    shards: int | None = None,
) -> tfrecreg.Build:
    """Make a registry with a build of these records, for example to check, load or release it.

    Args:
        folder: the folder of the registry, made if it is missing.
        splits: the records of each split, as dictionaries from feature name to value.
        name: the name of the dataset.
        keys: the keys of the records of each split; by default the keys are numbers.
        labels: for each feature with labels, its class names in the order of their numbers.
        schema: the text of the schema; None to infer one.
        shards: number of shards per split; None for the default.

    Returns:
        the build, with its manifest; `tfrecreg.open(folder)` opens its registry.

    Raises:
        UsageError: an example cannot hold a value, or keys are missing or not unique.
        RefusedError: the records do not conform to the schema.
    """
    root = Path(folder)
    registry = tfrecreg.init(root, with_dvc=False)
    if schema is not None:
        place = root / layout.schema_path(name)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(schema, "utf-8")
    data: dict[str, list[_Keyed]] = {}
    for split, records in splits.items():
        own = (keys or {}).get(split) or [f"{number:08}" for number in range(len(records))]
        if len(own) != len(records):
            raise UsageError(f"the split `{split}` has {len(records)} records, but {len(own)} keys")
        data[split] = [_Keyed(record, key) for record, key in zip(records, own, strict=True)]
    return registry[name].build(
        data=data,
        key=lambda record: record.key,
        labels=labels,
        shards=shards,
        base="none",
        progress=False,
    )


class _Keyed(dict[str, Any]):
    """A record with its key."""

    def __init__(self, record: Mapping[str, Any], key: str) -> None:
        super().__init__(record)
        self.key = key


def write_digits(
    folder: str | os.PathLike[str], *, train: int = 600, test: int = 100, seed: int = 1
) -> None:
    """Draw handwritten-looking digits, and write them as the four gzip files of MNIST.

    The same arguments give the same images on every machine.

    Args:
        folder: where to write, made if it is missing; files of the same names are replaced.
        train: number of images in the split `train`, at least 1.
        test: number of images in the split `test`, at least 1.
        seed: another seed gives other images.

    Raises:
        ValueError: a split would have no images.
        StorageError: a file cannot be written.
    """
    digits.write_digits(LocalStorage(os.fspath(folder)), train=train, test=test, seed=seed)


_FILES = 6
"""Number of raw files to damage at the start of the list, and also among the largest files."""

STRANGE_FOLDER = "raw \x1b[31m'\"$(é)\n"
"""A folder name that no message can print unchanged."""
STRANGE_NAMES = (
    "\x1b[2J-cleared",
    "two\nlines",
    "‮-turned",
    "\udcff-no-utf-8",
    "a b'\"$(c)",
    "日本語",
    "-rf",
    "x" * 200,
)
"""Unusual file names for tests. The suffix of the file is added to each name."""


def damaged(folder: Path, scratch: Path, files: Sequence[RawFile]) -> Iterator[tuple[str, Path]]:
    """Yield descriptions of damage, each with a copy of the raw data that has this damage."""
    largest = sorted(files, key=lambda each: (-each.stored, each.path))[:_FILES]
    chosen = {each.path: None for each in [*files[:_FILES], *largest]}
    for path in chosen:
        data = (folder / path).read_bytes()
        damages = {
            "is missing": None,
            "is empty": b"",
            "is cut off in the middle": data[: len(data) // 2],
            "has other bytes": bytes(each ^ 0xA5 for each in data[:4096]),
        }
        for what, content in damages.items():
            copy = fresh_copy(folder, scratch / "damaged")
            if content is None:
                (copy / path).unlink()
            else:
                (copy / path).write_bytes(content)
            yield f"`{path}` {what}", copy


def with_strange_names(folder: Path, scratch: Path, files: Sequence[RawFile]) -> Path:
    """Return a copy of raw data in which each folder has additional files with strange names."""
    copy = fresh_copy(folder, scratch / "strange")
    kinds: dict[tuple[PurePosixPath, str], RawFile] = {}
    for each in files:
        path = PurePosixPath(each.path)
        suffixes = "".join(path.suffixes)
        kinds[path.parent, suffixes if len(suffixes) < 20 else path.suffix] = each
    for (parent, suffixes), file in kinds.items():
        data = (folder / file.path).read_bytes()
        for name in STRANGE_NAMES:
            (copy / parent / f"{name}{suffixes}").write_bytes(data)
    return copy


def fresh_copy(folder: Path, place: Path) -> Path:
    """Copy a folder to a place, replacing any earlier copy there, and return the place."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(folder, place)
    return place

"""Defines the common base of the test classes, and makes records, shards, builds and raw data.

The base class has methods `verify_…` and no tests, so importing it into a module runs nothing. A
class that inherits from it gets a test for each method: `verify_items` becomes `test_items`.
"""

from __future__ import annotations

import os
import pickle
import re
import shutil
import tempfile
import unittest
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from multiprocessing import get_context
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn, TypeVar
from unittest.mock import patch

import tfrecreg
from tfrecreg.cli import digits
from tfrecreg.core.build.shard import make_payload
from tfrecreg.core.build.sources.interface import Item, RawFile, Skipped
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.reports import Report
from tfrecreg.core.check.scan.cache import ScanCache
from tfrecreg.core.check.scan.interface import Target, Validator
from tfrecreg.core.check.target import check_target
from tfrecreg.core.example.decode import decode
from tfrecreg.core.example.model import Example, encode
from tfrecreg.core.plugins.manager import Announced, plugins
from tfrecreg.core.plugins.records import PluginRecord, ValidatorRecord
from tfrecreg.core.records.framing import frame
from tfrecreg.core.registry import layout
from tfrecreg.core.registry.find import files_by_build, find_target, target_of
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.config import Config, GateConfig
from tfrecreg.core.values.errors import TfrecregError, UsageError
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine

if TYPE_CHECKING:
    from tfrecreg.core.build.sources.guarded import GuardedSource

T = TypeVar("T")

_PREFIX = "verify_"


class Workers(LocalEngine):
    """Worker processes for any work, however small."""

    def for_work(self, costs: Iterable[float]) -> LocalEngine:  # noqa: ARG002 - any
        return self


class KitTests(unittest.TestCase):
    """Base class of the kit: see :class:`SourceTests` and :class:`ValidatorTests`."""

    _shared: ClassVar[dict[str, Any]]
    """Values shared by the tests of one class. A value is made by the first test that needs it."""
    _held: ClassVar[ExitStack]
    _record: ClassVar[type[PluginRecord[Any]]]
    """The class of the record of the plugin under test."""

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if cls.__module__.startswith("tfrecreg.testing."):
            return
        cls._shared, cls._held = {}, ExitStack()
        for name in dir(cls):
            test = f"test_{name.removeprefix(_PREFIX)}"
            if name.startswith(_PREFIX) and not hasattr(cls, test):
                setattr(cls, test, getattr(cls, name))

    def setUp(self) -> None:
        super().setUp()
        kind = self._record.kind
        plugin = getattr(self, kind, None)
        if not plugin:
            self.fail(f"{type(self).__name__} names no `{kind}`")
        self.announced: Announced[Any] = self.entered(under_test(self._record, plugin))

    @classmethod
    def tearDownClass(cls) -> None:
        cls._shared.clear()
        cls._held.close()
        super().tearDownClass()

    def scratch(self) -> Path:
        """Make a new folder, which is removed after the last test of the class."""
        folder = tempfile.mkdtemp(prefix="tfrecreg-kit-")
        self._held.callback(shutil.rmtree, folder, ignore_errors=True)
        return Path(folder)

    def entered(self, context: AbstractContextManager[T]) -> T:
        """Enter a context, and leave it at the end of the test. Return the context's value."""
        found = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return found

    def refuse(self, error: TfrecregError) -> NoReturn:
        """Fail with the message of an error, its hint and its findings."""
        found = [f"{each.code} {each.message}" for each in getattr(error, "findings", ())]
        hint = f"hint: {error.hint}" if error.hint else ""
        raise self.failureException("\n".join(filter(None, [error.message, hint, *found]))) from (
            error
        )


UNINSTALLED = "uninstalled"
"""The distribution of a plugin, if a test gives the plugin as a class."""


@contextmanager
def under_test(kind: type[PluginRecord[Any]], plugin: str | type[Any]) -> Iterator[Announced[Any]]:
    """Yield the plugin. Commands and functions find it until the block ends.

    Args:
        kind: the class of the plugin's record.
        plugin: the name of an installed plugin, or a class. The name of a class is its attribute
            `name`, or else its class name in lower case. The attribute `codes` has its codes.

    Raises:
        PluginError: the plugin is not installed, or cannot be loaded.
    """
    known = plugins()
    if isinstance(plugin, str):
        yield known.find(kind, plugin)
        return
    name = str(getattr(plugin, "name", "") or re.sub(r"\W", "", plugin.__name__).lower())
    own = tuple(getattr(plugin, "codes", ()))
    record = kind(name=name, summary=plugin.__name__, codes=own, load=lambda: plugin)
    announced = Announced(record, name, UNINSTALLED, "0", name, plugin.__module__)
    with known.lending(announced):
        yield announced


GivenRecords = Sequence[Mapping[str, Any]]


def check_validator(
    validator: str | type[Validator],
    records: GivenRecords | str | os.PathLike[str],
    *,
    limits: Mapping[str, Any] | None = None,
    keys: Sequence[str] | None = None,
    labels: Mapping[str, Sequence[str]] | None = None,
    schema: str | None = None,
    engine: Engine | None = None,
) -> Report:
    """Check records with one validator, under its limits. This needs no registry and no gate.

    Args:
        validator: the name of an installed validator, or its class.
        records: examples, as dictionaries from feature name to value; or the path of a shard, of a
            folder, or a glob. If `keys`, `labels` or `schema` are given, the examples form a build
            with a manifest. Otherwise they form a bare shard.
        limits: the validator's options, as in ``limits.NAME`` of a gate.
        keys: the key of each record.
        labels: the class names of each feature with labels, in the order of the classes' numbers.
        schema: the text of a schema. By default, the schema is inferred.
        engine: the engine of the scan. By default, this process scans.

    Returns:
        the report, with `findings`, `measures`, `status`, and `errors` if the validator failed.

    Raises:
        UsageError: an option is unknown or has another type, or the records cannot be written.
        PluginError: the validator is not installed, or cannot be loaded.
    """
    with tempfile.TemporaryDirectory(prefix="tfrecreg-kit-") as folder:
        if isinstance(records, str | os.PathLike):
            (found,) = files_by_build([os.fspath(records)])
            target = target_of(found)
        elif keys is None and labels is None and schema is None:
            shard = Path(folder) / "records.tfrecord"
            write_shard(shard, records)
            target = find_target(shard)
        else:
            built = build_examples(
                Path(folder) / "registry",
                {"train": records},
                keys=None if keys is None else {"train": keys},
                labels=labels,
                schema=schema,
            )
            target = find_target(built)
        return checked(target, validator, limits=limits, engine=engine)


def checked(
    target: Target,
    validator: str | type[Validator],
    *,
    limits: Mapping[str, Any] | None = None,
    engine: Engine | None = None,
    cache: ScanCache | None = None,
) -> Report:
    """Check one target as :func:`check_validator` does, and return the report."""
    with under_test(ValidatorRecord, validator) as announced:
        gate = GateConfig(limits={announced.name: dict(limits)} if limits else {})
        return check_target(
            target,
            Config(gates={"default": gate}),
            CheckOptions(only=(announced.qualified,), cached=cache is not None),
            engine=engine or LocalEngine(1),
            cache=cache,
        )


class SourceListing(NamedTuple):
    """What a source returns before it makes examples, with items and files sorted."""

    items: list[Any]
    raw_files: list[Any]
    labels: dict[str, list[str]]
    schema: str
    codecs: dict[str, str]


def list_source(source: GuardedSource) -> SourceListing:
    """Return the listing of an opened source."""
    return SourceListing(
        items=sorted(source.items(), key=lambda each: (type(each).__name__, *each)),
        raw_files=sorted(source.raw_files()),
        labels={name: list(names) for name, names in source.labels().items()},
        schema=source.schema(),
        codecs=dict(source.codecs()),
    )


def in_other_process(
    source: GuardedSource, items: Sequence[Item]
) -> tuple[SourceListing, list[bytes | Skipped]]:
    """List the source and make its records in a process with another hash seed."""
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    with (
        patch.dict(os.environ, PYTHONHASHSEED=seed),
        ProcessPoolExecutor(1, get_context("spawn")) as pool,
    ):
        return pool.submit(_made, pickle.dumps(source), items).result()


def _made(packed: bytes, items: Sequence[Item]) -> tuple[SourceListing, list[bytes | Skipped]]:
    source = pickle.loads(packed)
    return list_source(source), [make_payload(source, item) for item in items]


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
            made = make_payload(opened, entry)
            yield entry, made if isinstance(made, Skipped) else decode(made)


def write_shard(path: str | os.PathLike[str], records: Iterable[Mapping[str, Any]]) -> None:
    """Write a TFRecord file of examples, in order.

    Args:
        records: dictionaries from feature name to value, as for :func:`tfrecreg.to_example`.

    Raises:
        UsageError: an example cannot hold a value.
        StorageError: the file cannot be written.
    """
    folder, name = os.path.split(os.path.abspath(path))  # noqa: PTH100 - a storage takes texts
    with LocalStorage(folder).create(name) as file:
        for each in records:
            payload = encode(tfrecreg.to_example(each))
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

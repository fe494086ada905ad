"""Defines the common base of the test classes. Lists a source in a new process.

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
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn, TypeVar
from unittest.mock import patch

from tfrecreg.core.build.sources.interface import Item, Skipped
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.reports import Report
from tfrecreg.core.check.scan.cache import ScanCache
from tfrecreg.core.check.scan.interface import Target, Validator
from tfrecreg.core.check.target import check_target
from tfrecreg.core.plugins.discovery import Announced
from tfrecreg.core.plugins.manager import plugins
from tfrecreg.core.plugins.records import PluginRecord, ValidatorRecord
from tfrecreg.core.registry.find import files_by_build, find_target, target_of
from tfrecreg.core.values.config import Config, GateConfig
from tfrecreg.core.values.errors import TfrecregError
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine
from tfrecreg.testing.data import build_examples, write_shard

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

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if cls.__module__.startswith("tfrecreg.testing."):
            return
        cls._shared, cls._held = {}, ExitStack()
        for name in dir(cls):
            test = f"test_{name.removeprefix(_PREFIX)}"
            if name.startswith(_PREFIX) and not hasattr(cls, test):
                setattr(cls, test, getattr(cls, name))

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
        """Enter a context until the end of the test, and return its value."""
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
    """What a source returns before it makes examples, in sorted order."""

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


def make(source: GuardedSource, item: Item) -> bytes | Skipped:
    """Return the payload of an item's record, or the reason to skip the item."""
    made = source.record(item, {})
    return made if isinstance(made, Skipped) else made.payload


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
    return list_source(source), [make(source, item) for item in items]

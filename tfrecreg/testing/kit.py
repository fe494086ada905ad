"""What the classes of tests have in common, and the listing of a source in a new process.

The base class has methods `verify_…` and no test, so that a module that imports it does not run it.
A class that inherits from it gets a test for each of them: `verify_keys` becomes `test_keys`.

`python -m tfrecreg.testing.kit FILE` reads what to do from a file and writes the result
beside it. Both are pickled by the parent and by this process.
"""

from __future__ import annotations

import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn, TypeVar

from tfrecreg.core.build.sources.interface import Item, Skipped
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.reports import Report
from tfrecreg.core.check.scan.cache import ScanCache
from tfrecreg.core.check.scan.interface import Target, Validator
from tfrecreg.core.check.target import check_target
from tfrecreg.core.plugins.discovery import Announced
from tfrecreg.core.plugins.manager import plugins
from tfrecreg.core.plugins.records import PluginRecord, ValidatorRecord
from tfrecreg.core.registry.shardset.target import files_targets, find_target
from tfrecreg.core.values.config import Config, GateConfig
from tfrecreg.core.values.errors import TfrecregError
from tfrecreg.core.values.findings import Code
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine
from tfrecreg.testing.data import build_examples, write_shard

if TYPE_CHECKING:
    from tfrecreg.core.build.sources.guarded import GuardedSource

T = TypeVar("T")

_PREFIX = "verify_"


class Workers(LocalEngine):
    """Worker processes for any work, however small."""

    def for_work(self, costs: Iterable[float], worth: float = 0.0) -> LocalEngine:  # noqa: ARG002 - any
        return self


class KitTests(unittest.TestCase):
    """Base class of the kit: see :class:`SourceTests` and :class:`ValidatorTests`."""

    _shared: ClassVar[dict[str, Any]]
    """What the tests of one class share: made by the first that needs it."""
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
        """A new folder, which is removed after the last test of the class."""
        folder = tempfile.mkdtemp(prefix="tfrecreg-kit-")
        self._held.callback(shutil.rmtree, folder, ignore_errors=True)
        return Path(folder)

    def entered(self, context: AbstractContextManager[T]) -> T:
        """Enter a context until the end of the test."""
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

    def expect_told(self, error: TfrecregError, when: str) -> None:
        """Expect that an error has a message that can be printed as it is."""
        for text in (error.message, error.hint):
            if not text.isprintable():
                self.fail(f"{when}: {text!r} has characters of the raw data: use `safe`")
        if not error.message.strip():
            self.fail(f"{when}: the {type(error).__name__} has no message")


UNINSTALLED = "uninstalled"
"""Stands for the distribution of a class that a test names."""


@contextmanager
def under_test(
    kind: type[PluginRecord[Any]], plugin: str | type[Any], codes: Sequence[Code] = ()
) -> Iterator[Announced[Any]]:
    """The plugin, found by commands and functions while the block lasts.

    Args:
        kind: the class of its record.
        plugin: its name, or its class: then its name is that of the class's attribute `name`, or
            of the class itself in lower case.
        codes: its own codes, if it is a class; else its record has them.

    Raises:
        PluginError: it is not installed, or cannot be loaded.
    """
    known = plugins()
    if isinstance(plugin, str):
        yield known.find(kind, plugin)
        return
    name = str(getattr(plugin, "name", "") or re.sub(r"\W", "", plugin.__name__).lower())
    own = tuple(codes or getattr(plugin, "codes", ()))
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
    """Check records by one validator, under its limits. No registry and no gate is needed.

    Args:
        validator: the name of an installed validator, or a class.
        records: examples, as dictionaries from feature name to value; or the path of a shard, of a
            folder, or a glob. With `keys`, `labels` or `schema`, the examples are those of a build,
            which has a manifest; else they are a bare shard.
        limits: its options, as ``limits.NAME`` of a gate has them.
        keys: the key of each record.
        labels: class names in order of their numbers, by feature.
        schema: the text of a schema, in place of the inferred one.
        engine: where to scan; None for this process.

    Returns:
        the report: its `findings`, `measures`, `status`, and `errors` if the validator failed.

    Raises:
        UsageError: an option is unknown or has another type, or the records cannot be written.
        PluginError: the validator is not installed, or cannot be loaded.
    """
    with tempfile.TemporaryDirectory(prefix="tfrecreg-kit-") as folder:
        if isinstance(records, str | os.PathLike):
            (target,) = files_targets([os.fspath(records)])
        elif keys is None and labels is None and schema is None:
            shard = Path(folder) / "records.tfrecord"
            write_shard(shard, records)
            (target,) = files_targets([str(shard)])
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
    """The report on one target, as :func:`check_validator` returns it."""
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
    """What a source says before an example is made, in an order of its own."""

    items: list[Any]
    raw_files: list[Any]
    labels: dict[str, list[str]]
    schema: str
    codecs: dict[str, str]


def list_source(source: GuardedSource) -> SourceListing:
    """The listing of an opened source."""
    return SourceListing(
        items=sorted(source.items(), key=lambda each: (type(each).__name__, *each)),
        raw_files=sorted(source.raw_files()),
        labels={name: list(names) for name, names in source.labels().items()},
        schema=source.schema(),
        codecs=dict(source.codecs()),
    )


def make(source: GuardedSource, item: Item) -> bytes | Skipped:
    """The payload of an item's record, or why there is none."""
    made = source.record(item, {})
    return made if isinstance(made, Skipped) else made.payload


def in_other_process(
    source: GuardedSource, items: Sequence[Item], folder: Path
) -> tuple[SourceListing, list[bytes | Skipped]]:
    """The listing and the records of a source, as another process has them.

    Raises:
        RuntimeError: it failed; with the text of its stderr.
    """
    todo = folder / "todo"
    todo.write_bytes(pickle.dumps((source, list(items))))
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    path = os.pathsep.join(each for each in sys.path if each)
    done = subprocess.run(
        [sys.executable, "-m", __name__, str(todo)],
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-4000:] or f"exit code {done.returncode}")
    found: tuple[SourceListing, list[bytes | Skipped]] = pickle.loads(todo.read_bytes())
    return found


def _answer(place: str) -> None:
    """Do what the file says, and put the result in its place."""
    todo = Path(place)
    source, items = pickle.loads(todo.read_bytes())
    listing = list_source(source)
    todo.write_bytes(pickle.dumps((tuple(listing), [make(source, item) for item in items])))


if __name__ == "__main__":
    _answer(sys.argv[1])

"""The tests that every source should pass."""

from __future__ import annotations

import os
import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from tfrecreg.core.build.request import BuildRequest
from tfrecreg.core.build.run import build_from_source
from tfrecreg.core.build.shard import make_payload
from tfrecreg.core.build.sources.guarded import GuardedSource
from tfrecreg.core.build.sources.interface import Item, Remark, Skipped, Source
from tfrecreg.core.example.decode import decode
from tfrecreg.core.example.model import Example, Kind
from tfrecreg.core.plugins.manager import plugins
from tfrecreg.core.plugins.recognition import describe_options
from tfrecreg.core.plugins.records import SourceRecord
from tfrecreg.core.registry.init import init
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.codes import CORE_CODES
from tfrecreg.core.values.errors import (
    PluginError,
    RefusedError,
    StorageError,
    TfrecregError,
    UsageError,
)
from tfrecreg.core.values.shards import ShardPolicy
from tfrecreg.core.values.typed_values import SkipLimit
from tfrecreg.testing.kit import (
    STRANGE_FOLDER,
    KitTests,
    SourceListing,
    Workers,
    damaged,
    fresh_copy,
    in_other_process,
    list_source,
    with_strange_names,
)

T = TypeVar("T")

_NAME = "kit"
"""The name of the datasets that tests build."""


class SourceTests(KitTests):
    r"""Inherit from this class, name the source, write small raw data, and run pytest or unittest::

        class TestLines(SourceTests):
            source = "lines"

            def write_raw(self, folder: Path) -> None:
                (folder / "train.tsv").write_text("positive\tA joy\nnegative\tNever again\n")

    A dozen records are enough, if they include every kind that the source knows. Each method
    `verify_…` becomes a test. To replace a test that does not suit a source, define a method with
    the same name.
    """

    _record = SourceRecord
    source: ClassVar[str | type[Source]]
    """The name of an installed source, or a class. The attribute `codes` of a source class lists
    the codes that the source defines.
    """
    options: ClassVar[Mapping[str, Any]] = {}
    """Options of the source, as Python values."""

    def write_raw(self, folder: Path) -> None:
        """Write small raw data into an empty folder, once for all tests of the class."""
        # Abstract, but not by `abc`: a runner then reports it as the error of the test class.
        raise NotImplementedError(f"{type(self).__name__} has no `write_raw`")

    # What the tests share

    @property
    def raw(self) -> Path:
        """The folder of the raw data."""
        return self._once("raw", self._written)

    def open(self, raw: Path | None = None) -> GuardedSource:
        """Open the source on the raw data, or on the folder `raw`."""
        known, name = plugins(), self.announced.qualified
        options = known.source_options(name, self.options)[0]
        # Under another distribution, so that the results of bundled sources are also checked.
        plugin_id = replace(self.announced.plugin_id, distribution=f"{name}, under test")
        codes = frozenset(code.code for code in self.announced.record.codes)
        storage = LocalStorage(os.fspath(raw or self.raw))
        kind = known.load(SourceRecord, name)
        return GuardedSource.open(kind, plugin_id, storage, options, codes)

    @property
    def listing(self) -> SourceListing:
        """The listing of the source."""
        return self._once("listing", lambda: list_source(self.open()))

    @property
    def items(self) -> list[Item]:
        """The items that the listing does not skip."""
        return [each for each in self.listing.items if isinstance(each, Item)]

    @property
    def made(self) -> list[bytes | Skipped]:
        """For each item, the payload of its record, or the reason to skip it."""

        def make_all() -> list[bytes | Skipped]:
            source = self.open()
            return [make_payload(source, item) for item in self.items]

        return self._once("made", make_all)

    def examples(self) -> Iterator[tuple[Item, Example]]:
        """Yield each item that has an example, with this example."""
        for item, made in zip(self.items, self.made, strict=True):
            if not isinstance(made, Skipped):
                yield item, decode(made)

    def _written(self) -> Path:
        folder = self.scratch() / "raw"
        folder.mkdir()
        self.write_raw(folder)
        if not any(folder.iterdir()):
            self.fail("`write_raw` wrote nothing")
        return folder

    def _once(self, name: str, make_it: Callable[[], T]) -> T:
        if name not in self._shared:
            with self._told():
                self._shared[name] = make_it()
        found: T = self._shared[name]
        return found

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except TfrecregError as error:
            self.refuse(error)

    # The tests

    def verify_items(self) -> None:
        """At least one item has an example, and each key is unique in its split."""
        keys = Counter((each.split, each.key) for each in self.items)
        twice = [key for key, count in keys.items() if count > 1]
        self.assertFalse(twice, "these keys are not unique in their splits")
        if not any(self.examples()):
            self.fail(f"no item has an example: the listing is {self.listing.items[:5]}")

    def verify_listing_is_repeatable(self) -> None:
        """Two listings of one source object are equal. A second object gives the same listing."""
        source = self.open()
        with self._told():
            first, second = list_source(source), list_source(source)
        self._expect_same_listing(first, second, "listed twice by one object")
        self._expect_same_listing(first, self.listing, "listed by two objects")

    def verify_source_is_picklable(self) -> None:
        """A source can be sent to a worker after it listed items and made an example."""
        source = self.open()
        with self._told():
            list_source(source)
            for item in self.items[:1]:
                make_payload(source, item)
            again: GuardedSource = pickle.loads(pickle.dumps(source))
            self._expect_same_listing(self.listing, list_source(again), "pickled and back")
            first = (make_payload(again, item) for item in self.items[:1])
            self._expect_same(self.items[:1], self.made[:1], first, "pickled and back")

    def verify_examples_are_repeatable(self) -> None:
        """`example` depends only on the item, not on the order of calls or the source object."""
        source = self.open()
        again = (make_payload(source, item) for item in self.items)
        self._expect_same(self.items, self.made, again, "made twice")
        reverse = (make_payload(source, item) for item in self.items[::-1])
        self._expect_same(self.items[::-1], self.made[::-1], reverse, "made in reverse order")

    def verify_another_process(self) -> None:
        """Another process with another hash seed has the same listing and examples."""
        with self._told():
            listing, made = in_other_process(self.open(), self.items)
        self._expect_same_listing(self.listing, listing, "listed in another process")
        self._expect_same(self.items, self.made, made, "made in another process")

    def verify_examples_fit_the_schema(self) -> None:
        """A build passes the validators `crc`, `manifest` and `schema`."""
        self._once("build 1", lambda: self._built(1))

    def verify_labels(self) -> None:
        """Label maps belong to features of the schema or the examples. Numbers are in range."""
        schema = parse_schema(self.listing.schema, "the schema")
        declared = {feature.name for feature in schema.features}
        found = list(self.examples())
        seen = {name for _, example in found for name in example}
        for feature, names in self.listing.labels.items():
            if feature not in declared | seen:
                self.fail(f"`labels` names the feature `{feature}`, which no example has")
            for item, example in found:
                values = example.get(feature)
                if values is None or values.kind is not Kind.INT64:
                    continue
                outside = [each for each in values.values if not 0 <= int(each) < len(names)]
                if outside:
                    self.fail(
                        f"{_named(item)} has the number {outside[0]} in `{feature}`, but `labels` "
                        f"names only {len(names)} of this feature's classes"
                    )

    def verify_raw_files(self) -> None:
        """`raw_files` lists each file once, with its size on disk."""
        storage = LocalStorage(os.fspath(self.raw))
        self.assertTrue(self.listing.raw_files, "`raw_files` lists no file")
        paths = Counter(each.path for each in self.listing.raw_files)
        self.assertFalse([path for path, count in paths.items() if count > 1], "named twice")
        for each in self.listing.raw_files:
            entry = storage.stat(each.path)
            if entry is None or entry.kind != "file":
                self.fail(f"`raw_files` lists `{each.path}`, which is not a file")
            self.assertEqual(each.stored, entry.size, f"`stored` of `{each.path}`")

    def verify_raw_paths(self) -> None:
        """`raw_path` names a raw file. If the record has `image/encoded`, this feature holds the
        bytes of the file.
        """
        source = self.open()
        if not source.locates:
            self.skipTest("the source has no `raw_path`")
        storage = LocalStorage(os.fspath(self.raw))
        known = {each.path for each in self.listing.raw_files}
        for item, example in self.examples():
            path = source.raw_path(item.split, item.key)
            if path is None:
                continue
            if path not in known:
                self.fail(f"`raw_path` of {_named(item)} is `{path}`, which `raw_files` lacks")
            encoded = example.get("image/encoded")
            if encoded is not None and encoded.values != (storage.read(path),):
                self.fail(f"`image/encoded` of {_named(item)} differs from the bytes of `{path}`")

    def verify_place_does_not_matter(self) -> None:
        """If the raw data lie in a folder with another name, the results are the same."""
        moved = self.open(fresh_copy(self.raw, self.scratch() / STRANGE_FOLDER))
        with self._told():
            self._expect_same_listing(self.listing, list_source(moved), "in another folder")
        made = (make_payload(moved, item) for item in self.items)
        self._expect_same(self.items, self.made, made, "made in another folder")

    def verify_strange_names(self) -> None:
        """Files with unprintable names are read, skipped or refused, and messages are printable."""
        files = self.listing.raw_files
        self._expect_accounted(
            with_strange_names(self.raw, self.scratch(), files), "with strange names of files"
        )

    def verify_damaged_raw_data(self) -> None:
        """With damaged raw data, each item is accounted for, or an error names the fault."""
        for what, folder in damaged(self.raw, self.scratch(), self.listing.raw_files):
            self._expect_accounted(folder, f"where {what}")

    def verify_empty_folder(self) -> None:
        """A folder without raw data is refused by a `RawDataError` that says what is expected."""
        empty = self.scratch()
        try:
            source = self.open(empty)
            found = [list(source.raw_files()), list(source.items())]
        except PluginError as error:
            self.fail(f"in an empty folder: {error.message}")
        except UsageError:
            return
        self.fail(f"in an empty folder: expected a RawDataError, found {found}")

    def verify_bytes_on_every_engine(self) -> None:
        """A build in one process and a build in several processes write the same bytes."""
        one = self._once("build 1", lambda: self._built(1))
        two = self._once("build 2", lambda: self._built(2))
        self.assertEqual(_contents(one), _contents(two), "builds with one process and with two")

    def verify_codes(self) -> None:
        """Every code is a `SRC` code, or the source's record defines it with all its texts."""
        own = self.announced.record.codes
        known = {*CORE_CODES, *(code.code for code in own)}
        entries = [*self.listing.items, *self.made]
        used = {each.code for each in entries if isinstance(each, Skipped | Remark)}
        self.assertFalse(used - known, "these codes are not in the `SourceRecord`")
        for code in own:
            for what in ("rule", "summary", "hint", "page"):
                self.assertTrue(getattr(code, what), f"the code {code.code} has no `{what}`")

    def verify_options_are_documented(self) -> None:
        """Each option has a docstring, which `plugins show` prints."""
        kind = plugins().load(SourceRecord, self.announced.qualified).Options
        silent = [each.name for each in describe_options(kind) if not each.help]
        self.assertFalse(silent, "these options have no docstring below them")
        self.assertEqual(len(fields(kind)), len(describe_options(kind)))

    # How they compare

    def _built(self, jobs: int) -> Path:
        request = BuildRequest(
            name=_NAME,
            source=self.announced.qualified,
            raw=os.fspath(self.raw),
            options=self.options,
            policy=ShardPolicy(records_per_shard=max(1, len(self.items) // 4)),
            max_skipped=SkipLimit.parse("100%"),
            max_dropped=SkipLimit.parse("100%"),
            base="none",
        )
        registry = self.scratch()
        init(registry, with_dvc=False)
        try:
            build_from_source(open_registry(registry), request, engine=Workers(jobs))
        except RefusedError as error:
            self.refuse(error)
        return registry / "data" / _NAME

    def _expect_accounted(self, folder: Path, when: str) -> None:
        """Expect each file in a folder to be read, skipped or refused, with printable messages."""
        try:
            source = self.open(folder)
            listing = list_source(source)
            entries: list[Any] = list(listing.items)
            entries += [make_payload(source, each) for each in entries if isinstance(each, Item)]
        except PluginError as error:
            self.fail(f"{when}: {error.message}")
        except (UsageError, StorageError):
            return  # its words are printable by design
        for each in entries:
            if isinstance(each, Skipped | Remark) and not each.detail.isprintable():
                self.fail(f"{when}: {each.detail!r} has characters that `safe` has to escape")
            if isinstance(each, Skipped) and not each.detail:
                self.fail(f"{when}: `{each.key!r}` is skipped without a reason")

    def _expect_same_listing(self, before: SourceListing, after: SourceListing, when: str) -> None:
        for what, one, other in zip(SourceListing._fields, before, after, strict=True):
            self.assertEqual(one, other, f"`{what}` differs, {when}")

    def _expect_same(
        self,
        items: Sequence[Item],
        before: Sequence[bytes | Skipped],
        after: Iterable[bytes | Skipped],
        when: str,
    ) -> None:
        with self._told():
            for item, one, other in zip(items, before, after, strict=True):
                self.assertEqual(_shown(one), _shown(other), f"{_named(item)} differs, {when}")


def _named(item: Item) -> str:
    return f"the item `{item.key}` of the split `{item.split}`"


def _shown(made: bytes | Skipped) -> Any:
    return made if isinstance(made, Skipped) else list(decode(made).items())


def _contents(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }

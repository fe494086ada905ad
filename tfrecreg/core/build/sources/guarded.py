"""A source as the rest of the package knows it: every call is guarded, every result checked.

Results of a third-party source are checked: a tuple is not an item, a text is not a list of names.
Those of the bundled sources are trusted, because there are millions of them and the tests of this
project check them.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from tfrecreg.core.build.sources.deal import BY_HASHES, Deal, SourceOptions
from tfrecreg.core.build.sources.interface import Item, RawFile, Remark, Skipped, Source, Written
from tfrecreg.core.build.sources.listing import similar_names, similar_paths
from tfrecreg.core.example.model import Example, encode
from tfrecreg.core.plugins.guard import PluginId, calling, failure, place_of
from tfrecreg.core.registry.manifest import ParentVersion
from tfrecreg.core.storage.interface import Readable
from tfrecreg.core.values.codes import CORE_CODES
from tfrecreg.core.values.errors import PluginError, SchemaError, UsageError
from tfrecreg.core.values.shards import is_split_name
from tfrecreg.core.values.text import DOCS, overrides, safe, type_text

if TYPE_CHECKING:
    from tfrecreg.core.build.sources.deal import ItemClass

T = TypeVar("T")

_MOST = 1 << 50
"""Less than 2^53, which is the largest number that a manifest holds, also for sums."""
_BOXES = ("image/object/bbox/xmin", "image/panoptic/segment/bbox/xmin")
_LABELS = ("image/class/label", "class/label", "label")
"""Features with the class of an item, where no label map names others."""
_NONE: frozenset[str] = frozenset()
_TRAVELS = f"this is an error in the plugin, a source must be picklable: {DOCS}/plugins.md"


class Record(NamedTuple):
    """The record of an item."""

    payload: bytes
    remarks: Sequence[Remark]
    objects: int
    """Number of objects that have a box."""


class _Wrong(Exception):
    """An unusable result; the message follows the name of the method."""


class GuardedSource:
    """One source, opened. Picklable where the source is.

    Each method raises what the source may raise (:class:`~tfrecreg.api.RawDataError` and the like),
    and a :class:`PluginError` that names the distribution for everything else.
    """

    def __init__(
        self,
        source: Source,
        plugin_id: PluginId,
        codes: frozenset[str] = _NONE,
        deal: Deal | None = None,
    ) -> None:
        self._source: Any = source
        self._packed: bytes | None = None
        self._is_trusted = plugin_id.is_ours
        self._codes = codes
        self._deal = deal
        self.plugin_id = plugin_id

    @classmethod
    def open(
        cls,
        kind: type[Source],
        plugin_id: PluginId,
        raw: Readable,
        options: SourceOptions,
        codes: frozenset[str] = _NONE,
    ) -> GuardedSource:
        """Make a source of that class."""
        if getattr(kind, "needs_local", False) is True and not raw.is_local:
            raise UsageError(
                f"{plugin_id} reads local files only, and the raw data are "
                f"`{safe(raw.root, limit=1000)}`",
                hint="download them, and name the folder with --raw PATH",
            )
        try:
            with calling(plugin_id, "__init__"):
                source = kind(raw, options.own)
        except Exception as error:
            raise failure(plugin_id, "cannot be opened", error, kind.__init__) from error
        return cls(source, plugin_id, codes, Deal(options.deal) if options.deal.split else None)

    def __getstate__(self) -> tuple[PluginId, frozenset[str], Deal | None, bytes]:
        if self._packed is not None:
            return self.plugin_id, self._codes, self._deal, self._packed
        try:
            with calling(self.plugin_id, "pickle"):
                packed = pickle.dumps(self._source)
        except Exception as error:
            what, of = "cannot travel to a worker process", type(self._source)
            raise failure(self.plugin_id, what, error, of, hint=_TRAVELS) from error
        return self.plugin_id, self._codes, self._deal, packed

    def __setstate__(self, state: tuple[PluginId, frozenset[str], Deal | None, bytes]) -> None:
        # Unpacked when it is first called: that runs code of the plugin.
        self.plugin_id, self._codes, self._deal, self._packed = state
        self._is_trusted = self.plugin_id.is_ours
        self._source = None

    def _unpacked(self) -> Any:
        if self._source is None and self._packed is not None:
            try:
                with calling(self.plugin_id, "unpickle"):
                    self._source = pickle.loads(self._packed)
            except Exception as error:
                what = "cannot be unpacked in a worker process"
                raise failure(self.plugin_id, what, error, hint=_TRAVELS) from error
        return self._source

    @property
    def module(self) -> str:
        """The module of its class."""
        return type(self._unpacked()).__module__

    @property
    def locates(self) -> bool:
        """Whether it knows raw files of records: see :meth:`raw_path`."""
        return overrides(self._unpacked(), Source, "raw_path")

    def place(self, method: str) -> str:
        """The end of a message on what a method gave: `` (faces.py, line 12)``, where it begins."""
        return place_of(getattr(self._unpacked(), method, None))

    def raw_files(self) -> Iterator[RawFile]:
        """Every file that the examples are made from."""
        return self._listed("raw_files", _raw_file)

    def items(self) -> Iterator[Item | Skipped | Remark]:
        """Every item in the split that it is dealt to, and remarks among them."""
        if self._deal is not None and self._deal.options.stratify:
            from tfrecreg.core.build.sources.deal import deal_strata

            return deal_strata(self._deal.options, self._with_classes, self._entries)
        entries = self._entries()
        return entries if self._deal is None else self._deal.listed(entries)

    def _entries(self) -> Iterator[Item | Skipped | Remark]:
        """What the source lists, then remarks on names of its classes and raw files that clash."""
        split = ""
        for entry in self._listed("items", partial(_checked_entry, own=self._codes)):
            split = split or entry.split
            yield entry
        if split:
            for feature, names in self.labels().items():
                yield from similar_names(split, feature, names)
            yield from similar_paths(split, lambda: (each.path for each in self.raw_files()))

    def _with_classes(self) -> Iterator[tuple[Item | Skipped | Remark, ItemClass]]:
        knows = overrides(self._unpacked(), Source, "class_of")
        features: list[str] | None = None
        any_class = False
        for entry in self._entries():
            found: ItemClass = None
            if isinstance(entry, Item):
                if knows:
                    found = self._call("class_of", _class, entry)
                else:
                    features = features or [*self.labels(), *_LABELS]
                    found = self._classes_made(entry, features)
            any_class = any_class or bool(found)
            yield entry, found
        if not any_class:
            raise UsageError(
                f"`stratify` needs classes, and no item of {self.plugin_id} has one",
                hint="leave it out, or derive a dataset from the build with the source `tfrecreg`, "
                "which can stratify by any value",
            )

    def _classes_made(self, item: Item, features: Sequence[str]) -> tuple[str, ...] | None:
        """The classes in the example of an item, by the first of these features with values."""
        made = self._made(item, {})
        if isinstance(made, Skipped):
            return None
        from tfrecreg.core.example.decode import decode  # few builds stratify

        example = decode(made.payload)
        values = (example[name].values for name in features if name in example)
        return tuple(sorted({str(each) for each in next(filter(len, values), ())})) or None

    def labels(self) -> Mapping[str, Sequence[str]]:
        """Label maps, lists in a plain dict."""
        return self._call("labels", _labels)

    def schema(self) -> str:
        """The schema's text, which parses."""
        return self._call("schema", _text if self._is_trusted else _schema)

    def describe(self) -> Mapping[str, str]:
        """The contents of the raw folder in words; empty by default."""
        return self._call("describe", _texts, default={})

    def codecs(self) -> Mapping[str, str]:
        """Libraries that affect the bytes written, with their versions; empty by default."""
        return self._call("codecs", _texts, default={})

    def parents(self) -> list[ParentVersion]:
        """The versions that a source of this package reads; none for any other source."""
        return self._said("parents")

    def notes(self) -> list[str]:
        """What a source of this package has to say before a build, one line each."""
        dealt = self._deal is not None and not self._deal.options.stratify
        return [*self._said("notes"), *([BY_HASHES] if dealt else [])]

    def _said(self, method: str) -> list[Any]:
        return self._call(method, _any_list, default=[]) if self._is_trusted else []

    def raw_path(self, split: str, key: str) -> str | None:
        """The raw file with the bytes of a record's image, or None."""
        if self._deal is not None:
            split = self._deal.source_split(split)
        return self._call("raw_path", _checked_path, split, key)

    def record(self, item: Item, sizes: dict[str, int]) -> Skipped | Record:
        """The item's record, or the reason for its absence."""
        if self._deal is not None:
            here, item = item.split, item._replace(split=self._deal.source_split(item.split))
            return _in_split(here, self._made(item, sizes))
        return self._made(item, sizes)

    def _made(self, item: Item, sizes: dict[str, int]) -> Skipped | Record:
        plugin_id = self.plugin_id
        try:
            source = self._source
            if source is None:
                source = self._unpacked()
            if self._is_trusted:
                return _record(source.example(item), sizes)
            with calling(plugin_id, "example"):
                return _record(_checked(source.example(item), item, self._codes), sizes)
        except Exception as error:
            what = f"failed on `{safe(item.key)}` of the split `{safe(item.split)}`"
            hint = "fix the plugin, or leave the item out of the raw data"
            of = getattr(self._source, "example", None)
            raise self._failure(what, error, of, hint=hint) from error

    def _call(
        self,
        method: str,
        check: Callable[[object], T],
        *arguments: object,
        default: T | None = None,
    ) -> T:
        try:
            source = self._unpacked()
            with calling(self.plugin_id, method):
                if default is not None and not hasattr(source, method):
                    return default
                return check(getattr(source, method)(*arguments))
        except Exception as error:
            of = getattr(self._source, method, None)
            raise self._failure(f"failed in `{method}`", error, of) from error

    def _listed(self, method: str, check: Callable[[object], T]) -> Iterator[T]:
        entries: Any = getattr(self._unpacked(), method, None)
        of = entries
        try:
            with calling(self.plugin_id, method):
                entries = entries()
                if isinstance(entries, str) or not isinstance(entries, Iterable):
                    raise _Wrong(f"{type_text(entries)} is not an iterator")
                of = entries = iter(entries)
            if self._is_trusted:
                yield from entries
                return
            while True:
                with calling(self.plugin_id, method):
                    try:
                        entry = next(entries)
                    except StopIteration:
                        return
                    entry = check(entry)
                yield entry
        except Exception as error:
            raise self._failure(f"failed in `{method}`", error, of) from error

    def _failure(self, what: str, error: Exception, of: object, *, hint: str = "") -> Exception:
        if isinstance(error, _Wrong):
            told = f"{self.plugin_id} {what}: {error}{place_of(of)}"
            return PluginError(told, hint=self.plugin_id.hint)
        return failure(self.plugin_id, what, error, of, hint=hint)


def _record(made: Example | Written | Skipped, sizes: dict[str, int]) -> Skipped | Record:
    if isinstance(made, Skipped):
        return made
    example, remarks = made if isinstance(made, Written) else (made, ())
    payload = encode(example)
    for name, feature in example.items():
        sizes[name] = sizes.get(name, 0) + feature.wire_bytes
    boxes = (example[name].count for name in _BOXES if name in example)
    return Record(payload, remarks, sum(boxes))


def _in_split(split: str, made: Skipped | Record) -> Skipped | Record:
    if isinstance(made, Skipped):
        return made._replace(split=split)
    return made._replace(remarks=[each._replace(split=split) for each in made.remarks])


def _string(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise _Wrong(f"{what} should be a text, found {type_text(value)}")
    try:
        value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise _Wrong(f"{what} is `{safe(value, limit=60)}`, which no file can hold") from None
    return str(value)


def _plain(value: object, what: str) -> str:
    """A text that a manifest can hold."""
    text = _string(value, what)
    if not text.isascii() and any("\ud800" <= each <= "\udfff" for each in text):
        raise _Wrong(f"{what} is `{safe(text, limit=60)}`, which is not valid text")
    return text


def _number(value: object, what: str, *, least: int = 0) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _Wrong(f"{what} should be a whole number, found {type_text(value)}")
    if not least <= value < _MOST:
        raise _Wrong(f"{what} is {safe(str(value), limit=30)}, expected at least {least}")
    return int(value)


def _split(value: object, of: str) -> str:
    split = _string(value, f"the split of {of}")
    if not is_split_name(split):
        shown = safe(split, limit=60)
        raise _Wrong(f"the split `{shown}` should be letters, digits and underscores")
    return split


def _code(value: object, own: frozenset[str]) -> str:
    code = _string(value, "a code")
    if code not in own and (not code.startswith("SRC") or code not in CORE_CODES):
        shown = safe(code, limit=60)
        raise _Wrong(f"`{shown}` is not a code of a source: `tfrecreg explain` lists them")
    return code


def _checked_entry(entry: object, own: frozenset[str]) -> Item | Skipped | Remark:
    if isinstance(entry, Item):
        split = _split(entry.split, "an item")
        key = _string(entry.key, "the key of an item")
        named = f"of the item `{safe(key, limit=60)}`"
        if not isinstance(entry.state, bytes):
            raise _Wrong(f"`state` {named} should be bytes, found {type_text(entry.state)}")
        return Item(split, key, _number(entry.size, f"`size` {named}"), bytes(entry.state))
    if isinstance(entry, Skipped):
        return _skipped(entry, own)
    if isinstance(entry, Remark):
        return _remark(entry, own)
    raise _Wrong(f"expected an Item, a Skipped or a Remark, found {type_text(entry)}")


def _skipped(entry: Skipped, own: frozenset[str]) -> Skipped:
    key = _string(entry.key, "the key of a Skipped")
    detail = _string(entry.detail, "the detail of a Skipped")
    return Skipped(_split(entry.split, "a Skipped"), key, _code(entry.code, own), detail)


def _remark(entry: object, own: frozenset[str]) -> Remark:
    if not isinstance(entry, Remark):
        raise _Wrong(f"expected a Remark, found {type_text(entry)}")
    key = _string(entry.key, "the key of a Remark")
    detail = _string(entry.detail, "the detail of a Remark")
    times = _number(entry.times, "`times` of a Remark", least=1)
    return Remark(_split(entry.split, "a Remark"), key, _code(entry.code, own), detail, times)


def _raw_file(entry: object) -> RawFile:
    if not isinstance(entry, RawFile):
        raise _Wrong(f"expected a RawFile, found {type_text(entry)}")
    path = _string(entry.path, "the path of a RawFile")
    named = f"of `{safe(path, limit=60)}`"
    stored = _number(entry.stored, f"`stored` {named}")
    return RawFile(path, stored, _number(entry.decoded, f"`decoded` {named}"))


def _checked(made: object, item: Item, own: frozenset[str]) -> Written | Skipped:
    if isinstance(made, Skipped):
        skipped = _skipped(made, own)
        if skipped[:2] != item[:2]:
            raise _Wrong(
                f"it skipped `{safe(skipped.key)}` of `{safe(skipped.split)}` in its place"
            )
        return skipped
    example, remarks = made if isinstance(made, Written) else (made, ())
    if not isinstance(example, Mapping):
        raise _Wrong(f"expected an example, found {type_text(example)}")
    return Written(dict(example), [_remark(each, own) for each in remarks])


def _labels(found: object) -> Mapping[str, Sequence[str]]:
    if not isinstance(found, Mapping):
        raise _Wrong(f"expected feature names and their class names, found {type_text(found)}")
    made: dict[str, list[str]] = {}
    for feature, names in found.items():
        name = _plain(feature, "the name of a feature")
        if isinstance(names, str) or not isinstance(names, Sequence):
            raise _Wrong(
                f"class names of `{safe(name)}` should be a list, found {type_text(names)}"
            )
        made[name] = [_plain(each, f"a class name of `{safe(name)}`") for each in names]
    return made


def _any_list(found: Any) -> list[Any]:
    return list(found)


def _text(found: object) -> str:
    return _plain(found, "the schema")


def _schema(found: object) -> str:
    from tfrecreg.core.schema.proto import parse_schema

    text = _plain(found, "the schema")
    try:
        parse_schema(text, "schema")
    except SchemaError as error:
        raise _Wrong(error.message) from error
    return text


def _texts(found: object) -> Mapping[str, str]:
    if not isinstance(found, Mapping):
        raise _Wrong(f"expected names and texts, found {type_text(found)}")
    return {_plain(name, "a name"): _plain(text, "a text") for name, text in found.items()}


def _class(found: object) -> str | None:
    return None if found is None else _string(found, "the class of an item")


def _checked_path(found: object) -> str | None:
    return None if found is None else _string(found, "the path")

"""Guards a source: errors in its calls name the plugin.

Results of a third-party source are checked: a plain tuple is not an item. Results of bundled
sources are not checked, because there are millions of them.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar, cast

import msgspec

from tfrecreg.core.build.sources.deal import BY_HASHES, Deal, ItemClass, SourceOptions, deal_strata
from tfrecreg.core.build.sources.interface import Item, RawFile, Remark, Skipped, Source, Written
from tfrecreg.core.build.sources.listing import similar_names, similar_paths
from tfrecreg.core.example.model import Example, encode
from tfrecreg.core.plugins.guard import PluginId, blaming, calling, failure
from tfrecreg.core.registry.manifest import ParentVersion
from tfrecreg.core.storage.interface import Readable
from tfrecreg.core.values.codes import CORE_CODES, what_became_of
from tfrecreg.core.values.errors import SchemaError, UsageError
from tfrecreg.core.values.shards import is_split_name
from tfrecreg.core.values.text import listed, overrides, type_text

T = TypeVar("T")
E = TypeVar("E", bound=Item | Skipped | Remark | RawFile)

_BOXES = ("image/object/bbox/xmin", "image/panoptic/segment/bbox/xmin")
_LABELS = ("image/class/label", "class/label", "label")
"""Features that may hold the class of an item. Features with a label map take precedence."""
_NONE: frozenset[str] = frozenset()
_ENTRIES: tuple[type[Item | Skipped | Remark], ...] = (Item, Skipped, Remark)
"""The types of the entries that a source lists."""


class Record(NamedTuple):
    payload: bytes
    remarks: Sequence[Remark]
    objects: int
    """Number of objects that have a box."""


class _Wrong(Exception):
    """An unusable result. The message is a sentence that begins with the name of the method."""


class GuardedSource:
    """One source, opened. Picklable if the source is. If a source raises an error that sources must
    not raise, the error becomes a :class:`PluginError`, which names the distribution.
    """

    def __init__(
        self,
        source: Source,
        plugin_id: PluginId,
        codes: frozenset[str] = _NONE,
        deal: Deal | None = None,
    ) -> None:
        self._source: Any = source
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
        if getattr(kind, "needs_local", False) and raw.local_path() is None:
            raise UsageError(
                f"{plugin_id} reads local files only, but the raw data are `{raw.root}`"
            )
        with blaming(plugin_id, "cannot be opened"):
            source = kind(raw, options.own)
        return cls(source, plugin_id, codes, Deal(options.deal) if options.deal.split else None)

    def __reduce__(self) -> tuple[object, ...]:
        with blaming(self.plugin_id, "cannot be sent to a worker process"):
            packed = pickle.dumps(self._source)
        return _unpacked, (packed, self.plugin_id, self._codes, self._deal)

    @property
    def module(self) -> str:
        return type(self._source).__module__

    @property
    def locates(self) -> bool:
        """Whether the source knows the raw file of each record: see :meth:`raw_path`."""
        return overrides(self._source, Source, "raw_path")

    def raw_files(self) -> Iterator[RawFile]:
        return self._listed("raw_files", partial(_entry, (RawFile,), self._codes))

    def items(self) -> Iterator[Item | Skipped | Remark]:
        """Every item in its final split. Skipped items and remarks may come between items."""
        if self._deal is not None and self._deal.options.stratify:
            return deal_strata(self._deal.options, self._with_classes(), self._entries())
        entries = self._entries()
        if self._deal is None:
            return entries
        grouped = getattr(self._source, "grouped", str) if self._is_trusted else str
        return self._deal.listed(entries, grouped=grouped)

    def _entries(self) -> Iterator[Item | Skipped | Remark]:
        """The entries of the source, then remarks on similar class names and similar raw paths."""
        split = ""
        for entry in self._listed("items", partial(_entry, _ENTRIES, self._codes)):
            split = split or entry.split
            yield entry
        if split:
            for feature, names in self.labels().items():
                yield from similar_names(split, feature, names)
            yield from similar_paths(split, lambda: (each.path for each in self.raw_files()))

    def _with_classes(self) -> Iterator[tuple[Item | Skipped | Remark, ItemClass]]:
        knows = overrides(self._source, Source, "class_of")
        features: list[str] | None = None
        any_class = False
        for entry in self._entries():
            found: ItemClass = None
            if isinstance(entry, Item):
                if knows:
                    found = self._call("class_of", _TEXT_OR_NONE, entry)
                else:
                    features = features or [*self.labels(), *_LABELS]
                    found = self._classes_made(entry, features)
            any_class = any_class or bool(found)
            yield entry, found
        if not any_class:
            raise UsageError(f"`stratify` needs classes, but no item of {self.plugin_id} has one")

    def _classes_made(self, item: Item, features: Sequence[str]) -> tuple[str, ...] | None:
        """The classes in an item's example, from the first of these features that has values."""
        made = self._made(item, {})
        if isinstance(made, Skipped):
            return None
        from tfrecreg.core.example.decode import decode  # few builds stratify

        example = decode(made.payload)
        values = (example[name].values for name in features if name in example)
        return tuple(sorted({str(each) for each in next(filter(len, values), ())})) or None

    def labels(self) -> Mapping[str, Sequence[str]]:
        """The label maps: a plain dict of lists."""
        return self._call("labels", partial(_fitting, dict[str, list[str]]))

    def schema(self) -> str:
        """The text of the schema. It can be parsed."""
        text: str = self._call("schema", _TEXT if self._is_trusted else _schema)
        return text

    def describe(self) -> Mapping[str, str]:
        """A description of the raw folder; empty by default."""
        return self._call("describe", _TEXTS, default={})

    def codecs(self) -> Mapping[str, str]:
        """Libraries that affect the bytes written, with their versions; empty by default."""
        return self._call("codecs", _TEXTS, default={})

    def parents(self) -> list[ParentVersion]:
        """The dataset versions that a bundled source reads; empty for any other source."""
        return self._call("parents", list, default=[]) if self._is_trusted else []

    def notes(self) -> list[str]:
        """Lines to print before a build; a bundled source may add some."""
        dealt = self._deal is not None and not self._deal.options.stratify
        own: list[str] = self._call("notes", list, default=[]) if self._is_trusted else []
        return [*own, *([BY_HASHES] if dealt else [])]

    def raw_path(self, split: str, key: str) -> str | None:
        """The raw file with the bytes of a record's image, or None."""
        if self._deal is not None:
            split = self._deal.source_split(split)
        return self._call("raw_path", _TEXT_OR_NONE, split, key)

    def record(self, item: Item, sizes: dict[str, int]) -> Skipped | Record:
        if self._deal is not None:
            here, item = item.split, item._replace(split=self._deal.source_split(item.split))
            made = self._made(item, sizes)
            if isinstance(made, Skipped):
                return made._replace(split=here)
            return made._replace(remarks=[each._replace(split=here) for each in made.remarks])
        return self._made(item, sizes)

    def _made(self, item: Item, sizes: dict[str, int]) -> Skipped | Record:
        try:
            if self._is_trusted:
                return _record(self._source.example(item), sizes)
            with calling():
                made = _checked(self._source.example(item), item, self._codes)
                return _record(made, sizes)
        except Exception as error:
            what = f"failed on `{item.key}` of the split `{item.split}`"
            raise self._failure(what, error) from error

    def _call(
        self,
        method: str,
        check: Callable[[Any], T],
        *arguments: object,
        default: T | None = None,
    ) -> T:
        try:
            with calling():
                if default is not None and not hasattr(self._source, method):
                    return default
                return check(getattr(self._source, method)(*arguments))
        except Exception as error:
            raise self._failure(f"failed in `{method}`", error) from error

    def _listed(self, method: str, check: Callable[[object], T]) -> Iterator[T]:
        entries: Any = getattr(self._source, method, None)
        try:
            with calling():
                entries = iter(entries())
            if self._is_trusted:
                yield from entries
                return
            while True:
                with calling():
                    try:
                        entry = next(entries)
                    except StopIteration:
                        return
                    entry = check(entry)
                yield entry
        except Exception as error:
            raise self._failure(f"failed in `{method}`", error) from error

    def _failure(self, what: str, error: Exception) -> Exception:
        if isinstance(error, _Wrong):
            return self.plugin_id.error(f"{what}: {error}")
        return failure(self.plugin_id, what, error)


def _unpacked(
    packed: bytes, plugin_id: PluginId, codes: frozenset[str], deal: Deal | None
) -> GuardedSource:
    with blaming(plugin_id, "cannot be unpacked in a worker process"):
        source = pickle.loads(packed)
    return GuardedSource(source, plugin_id, codes, deal)


def _record(made: Example | Written | Skipped, sizes: dict[str, int]) -> Skipped | Record:
    if isinstance(made, Skipped):
        return made
    example, remarks = made if isinstance(made, Written) else (made, ())
    payload = encode(example)
    for name, feature in example.items():
        sizes[name] = sizes.get(name, 0) + feature.wire_bytes
    boxes = (example[name].count for name in _BOXES if name in example)
    return Record(payload, remarks, sum(boxes))


def _fitting(kind: Any, value: object) -> Any:
    """Convert `value` to the type `kind`. Its texts must be encodable as UTF-8."""
    found = _converted(kind, value)
    try:
        msgspec.json.encode(found)
    except UnicodeEncodeError as error:
        raise _Wrong(f"a text in it is not valid: {error}") from None
    return found


def _converted(kind: Any, value: object) -> Any:
    try:
        return msgspec.convert(value, kind, builtin_types=(bytes,))
    except msgspec.ValidationError as error:
        fields = getattr(kind, "_fields", ())
        told = re.sub(r"\$\[(\d)\]", lambda at: f"`{fields[int(at[1])]}`", str(error))
        raise _Wrong(told.replace(" - at `", " at `").replace("``", "`")) from None


def _entry(kinds: tuple[type[E], ...], own: frozenset[str], entry: object) -> E:
    """Check that a plugin's answer has one of these types, with fields of the right types."""
    kind = next(filter(partial(isinstance, entry), kinds), None)
    if kind is None:
        names = listed((each.__name__ for each in kinds), word="or")
        raise _Wrong(f"expected {names}, found {type_text(entry)}")
    # Plain texts, not instances of a plugin's subclass, because they travel to workers.
    plain = [str(each) if isinstance(each, str) else each for each in cast("E", entry)]
    found: E = _converted(kind, plain)
    try:
        "".join(each for each in plain if isinstance(each, str)).encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise _Wrong(f"a text in it is not valid: {error}") from None
    if not isinstance(found, RawFile) and not is_split_name(found.split):
        raise _Wrong(f"the split `{found.split}` should have only letters, digits and underscores")
    code = found.code if isinstance(found, Skipped | Remark) else None
    if code is not None and code not in own and not (code.startswith("SRC") and code in CORE_CODES):
        raise _Wrong(
            f"`{code}` is not a code of a source: `tfrecreg explain` lists the codes"
            f"{what_became_of(code)}"
        )
    return found


def _checked(made: Any, item: Item, own: frozenset[str]) -> Written | Skipped:
    if isinstance(made, Skipped):
        skipped = _entry((Skipped,), own, made)
        if skipped[:2] != item[:2]:
            raise _Wrong(f"it skipped `{skipped.key}` of `{skipped.split}` instead")
        return skipped
    example, remarks = made if isinstance(made, Written) else (made, ())
    if not isinstance(example, Mapping):
        raise _Wrong(f"expected an example, found {type_text(example)}")
    return Written(dict(example), [_entry((Remark,), own, each) for each in remarks])


def _schema(found: object) -> str:
    from tfrecreg.core.schema.proto import parse_schema

    text: str = _fitting(str, found)
    try:
        parse_schema(text, "schema")
    except SchemaError as error:
        raise _Wrong(error.message) from error
    return text


_TEXT: Callable[[object], str] = partial(_fitting, str)
_TEXTS: Callable[[object], dict[str, str]] = partial(_fitting, dict[str, str])
_TEXT_OR_NONE: Callable[[object], str | None] = partial(_converted, str | None)

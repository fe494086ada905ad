"""The base class of sources, and the text of schemas that a source writes itself.

A source lists **items** and makes one example of each. The listing runs once, in the parent; the
making runs in worker processes, so a source is picklable and :meth:`Source.example` is pure::

    @dataclass(frozen=True)
    class LinesOptions:
        encoding: str = "utf-8"

    class Lines(Source):
        Options = LinesOptions

        def raw_files(self) -> Iterator[RawFile]:
            for entry in self.raw.list():
                yield RawFile(entry.path, entry.size, entry.size)

        def items(self) -> Iterator[Item | Skipped]:
            for entry in self.raw.list():
                yield Item("train", entry.path, entry.size)

        def example(self, item: Item) -> Example | Skipped:
            text = self.raw.read(item.key).decode(self.options.encoding)
            return {"text": bytes_feature(text)}

        def schema(self) -> str:
            return 'feature { name: "text" type: BYTES presence { min_fraction: 1 } shape {} }'

It comes in through a :class:`~tfrecreg.api.SourceRecord` of the hook ``tfrecreg_sources``.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

from tfrecreg.core.example.model import Example, Kind
from tfrecreg.core.storage.interface import Readable
from tfrecreg.core.values.errors import PluginError, UsageError
from tfrecreg.core.values.text import ExtensionPoint, listed, safe
from tfrecreg.core.values.typed_values import NoOptions


class Item(NamedTuple):
    """One unit of raw data, from which an example is made."""

    split: str
    key: str
    """Unique in its split. It names the record in the index, in findings and in diffs."""
    size: int
    """Estimated size of the payload in bytes, for planning shards. Deterministic."""
    state: bytes = b""
    """Whatever :meth:`Source.example` needs beyond the key. Small: the plan holds all items."""


class Skipped(NamedTuple):
    """An item that gets no example, and why."""

    split: str
    key: str
    code: str
    """A ``SRC`` code, ``SRC002``, or one that the source's record announces."""
    detail: str


class Remark(NamedTuple):
    """A note on raw data that were altered or ignored while every item was kept.

    Examples are a clipped box, or files that nothing refers to. The ledger counts remarks; limits
    on skipped items do not.
    """

    split: str
    key: str
    """The item's key; a file name if the remark concerns no single item."""
    code: str
    """As that of :class:`Skipped`."""
    detail: str
    times: int = 1
    """Number of occurrences."""


class Written(NamedTuple):
    """An item's example, and the remarks about it."""

    example: Example
    remarks: Sequence[Remark] = ()


class RawFile(NamedTuple):
    """One raw file, as the base of size inflation."""

    path: str
    """Relative to the raw root."""
    stored: int
    """Size in bytes on disk."""
    decoded: int
    """Size in bytes without whole-file compression: of the IDX inside the gzip. Otherwise
    `stored`."""


class Source(ExtensionPoint, ABC):
    """Raw data of one kind, opened at one place with one set of options. Picklable.

    A subclass defines :meth:`raw_files`, :meth:`items`, :meth:`example` and :meth:`schema`. All
    else is optional.
    """

    Options: ClassVar[type[Any]] = NoOptions
    """A frozen dataclass whose fields type ``--option K=V`` and ``options`` in the config."""
    needs_local: ClassVar[bool] = False
    """Whether it opens files by their paths, so that it cannot read raw data behind URLs."""

    def __init__(self, raw: Readable, options: Any) -> None:
        """Keep `raw` without reading it."""
        self.raw = raw
        self.options = options

    @abstractmethod
    def raw_files(self) -> Iterator[RawFile]:
        """Every file that the examples are made from.

        Raises:
            RawDataError: the folder does not hold what this source reads.
        """

    @abstractmethod
    def items(self) -> Iterator[Item | Skipped | Remark]:
        """Every item, streamed, in any order (the plan has its own), and remarks among them.

        Raises:
            RawDataError: the raw data are not what this source reads.
        """

    @abstractmethod
    def example(self, item: Item) -> Example | Written | Skipped:
        """The item's example, or the reason for its absence. Pure; called in a worker process.

        A source with remarks on the example returns both as :class:`Written`.
        """

    @abstractmethod
    def schema(self) -> str:
        """The schema (`.pbtxt` text) that examples made with these options conform to."""

    def labels(self) -> Mapping[str, Sequence[str]]:
        """Label maps: feature name to the class names in order of their numbers.

        By default there are none.
        """
        return {}

    def class_of(self, item: Item) -> str | None:  # noqa: ARG002 - a default
        """The class of an item, which the option `stratify` of all sources needs before the build.

        None for an item without one. If a subclass does not define it, the option makes every
        example once more, and takes the values of the first feature that has a label map.
        """
        return None

    def describe(self) -> Mapping[str, str]:
        """What the raw folder holds, for ``--dry-run``: ``{"layout": "flat"}``.

        Names from the data are escaped by :func:`tfrecreg.api.safe`. Empty by default.
        """
        return {}

    def codecs(self) -> Mapping[str, str]:
        """Encoders and decoders beside zlib that affect the bytes written, with their versions.

        They go into the manifest: ``{"pillow": "12.0.0"}``. By default there are none.
        """
        return {}

    def raw_path(self, split: str, key: str) -> str | None:  # noqa: ARG002 - a default
        """The raw file whose bytes are `image/encoded` of that record, for ``check --raw``.

        None if they are not the bytes of a whole file. If a subclass does not define it,
        ``check --raw`` says that records cannot be compared.
        """
        return None


def bundled_schema(package: str, name: str) -> str:
    """Text of the schema ``<name>.pbtxt`` that the import package `package` ships.

    An installed package has it beside its modules. In a checkout of this project, the schemas
    stand in the folder ``schemas`` beside the folder of the top package.

    Raises:
        PluginError: there is no such package or no such file in it.
    """
    file = f"{name}.pbtxt"
    try:
        root = resources.files(package)
    except (ImportError, TypeError) as error:
        raise PluginError(
            f"the schema `{safe(file)}` is to come from `{safe(package)}`, "
            f"which is not a package that can be imported",
            hint="install the plugin again: its package data are incomplete",
        ) from error
    places = [root.joinpath(file)]
    if isinstance(root, Path):
        checkout = root.parents[max(1, package.count("."))]
        places.append(checkout / "schemas" / file)
    for place in places:
        if place.is_file():
            return place.read_text(encoding="utf-8")
    raise PluginError(
        f"the package `{safe(package)}` has no schema `{safe(file)}`: looked for "
        + " and ".join(f"`{safe(str(place))}`" for place in places),
        hint="reinstall the distribution that ships the package",
    )


Count = Literal["one", "optional", "list"]
"""Values a record: exactly one, none or one, or any number."""

_COUNTS = {
    "one": "presence { min_fraction: 1 min_count: 1 }\n  shape {}",
    "optional": "value_count { min: 0 max: 1 }",
    "list": "value_count { min: 0 }",
}
_KINDS = {Kind.BYTES: "BYTES", Kind.FLOAT: "FLOAT", Kind.INT64: "INT"}
_FORMATS = ("bmp", "gif", "jpeg", "png", "webp")


def feature_schema(
    name: str,
    kind: Literal["BYTES", "FLOAT", "INT"] | Kind,
    count: Count = "one",
    domain: str = "",
) -> str:
    """A feature as text of a schema.

    Args:
        name: any text.
        kind: the type in the schema, or the kind of the feature's values.
        domain: further fields, such as ``int_domain { min: 0 }``.

    Raises:
        UsageError: there is no such kind or count.
    """
    type_name = _KINDS.get(kind) if isinstance(kind, Kind) else kind
    for word, value, known in (("kind", type_name, _KINDS.values()), ("count", count, _COUNTS)):
        if value not in known:
            given = repr(kind if word == "kind" else count)
            raise UsageError(
                f"`{word}` of `{safe(name)}` should be {listed(known, word='or')}, found "
                f"{safe(given, limit=60)}"
            )
    lines = [f"name: {json.dumps(name)}", f"type: {type_name}", _COUNTS[count], domain]
    return "feature {\n" + "".join(f"  {line}\n" for line in lines if line) + "}\n"


def image_schema(prefix: str, count: Count = "one", *, named: bool = False) -> str:
    """The features of an image: ``PREFIX/encoded``, its format, its height and its width.

    Args:
        named: whether also its filename, source id and SHA-256: with the prefix ``image``, what
            :func:`image_features` writes.
    """
    values = "".join(f"    value: {json.dumps(each)}\n" for each in _FORMATS)
    name = json.dumps(f"{prefix}/format")
    formats = f"string_domain {{\n    name: {name}\n{values}  }}"
    names = ("filename", "source_id", "key/sha256") if named else ()
    return (
        feature_schema(f"{prefix}/encoded", "BYTES", count, "image_domain {}")
        + feature_schema(f"{prefix}/format", "BYTES", count, formats)
        + feature_schema(f"{prefix}/height", "INT", count, "int_domain { min: 1 }")
        + feature_schema(f"{prefix}/width", "INT", count, "int_domain { min: 1 }")
        + "".join(feature_schema(f"{prefix}/{name}", "BYTES", count) for name in names)
    )

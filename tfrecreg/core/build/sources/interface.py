"""The base class of sources, and functions that write the text of schemas.

A source lists **items** and makes one example per item. The items are listed in the parent. The
examples are made in worker processes, so a source is picklable and :meth:`Source.example` is pure.
A :class:`~tfrecreg.api.SourceRecord` of the hook ``tfrecreg_sources`` announces the source.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from msgspec import Meta

from tfrecreg.core.example.model import Example, Kind
from tfrecreg.core.images.model import IMAGE_FORMATS
from tfrecreg.core.storage.interface import Readable
from tfrecreg.core.values.errors import PluginError
from tfrecreg.core.values.text import ExtensionPoint
from tfrecreg.core.values.typed_values import NoOptions

_MOST = 1 << 50
"""Sizes stay below this number, so that sums stay below 2^53, the maximum in a manifest."""
Size = Annotated[int, Meta(ge=0, lt=_MOST)]
"""Bytes."""


class Item(NamedTuple):
    """One unit of raw data, from which an example is made."""

    split: str
    key: str
    """Unique in its split. It names the record in the index, in findings and in diffs."""
    size: Size
    """Estimated size of the payload in bytes, for planning shards. Deterministic."""
    state: bytes = b""
    """Small data that :meth:`Source.example` needs with the key. The plan holds all items."""


class Skipped(NamedTuple):
    """An item that gets no example, and why."""

    split: str
    key: str
    code: str
    """A ``SRC`` code such as ``SRC110``, or a code that the source's record announces."""
    detail: str


class Remark(NamedTuple):
    """A note that raw data were altered or ignored, although no item was skipped.

    For example, a box was clipped, or nothing refers to a file. The ledger counts remarks, but
    limits on skipped items ignore them.
    """

    split: str
    key: str
    """The item's key, or a file name if the remark is not about a single item."""
    code: str
    """As in :class:`Skipped`."""
    detail: str
    times: Annotated[int, Meta(ge=1, lt=_MOST)] = 1
    """Number of occurrences."""


class Written(NamedTuple):
    """An item's example, and the remarks about it."""

    example: Example
    remarks: Sequence[Remark] = ()


class RawFile(NamedTuple):
    """One raw file, with its sizes. A build's inflation is relative to the sums of these sizes."""

    path: str
    """Relative to the raw root."""
    stored: Size
    """Size in bytes on disk."""
    decoded: Size
    """Size in bytes without whole-file compression: for a gzipped IDX, the size of the IDX.
    Otherwise `stored`."""


class Source(ExtensionPoint, ABC):
    """Raw data of one kind, opened in one place with one set of options. Picklable.

    A subclass defines :meth:`raw_files`, :meth:`items`, :meth:`example` and :meth:`schema`. All
    other methods are optional.
    """

    Options: ClassVar[type[Any]] = NoOptions
    """A frozen dataclass: its fields are the names and types of the source's options."""
    needs_local: ClassVar[bool] = False
    """Whether the source opens files by their paths, and so cannot read raw data behind URLs."""

    def __init__(self, raw: Readable, options: Any) -> None:
        """Keep `raw` without reading it."""
        self.raw = raw
        self.options = options

    @abstractmethod
    def raw_files(self) -> Iterator[RawFile]:
        """Every file from which examples are made.

        Raises:
            RawDataError: the folder does not hold data that this source reads.
        """

    @abstractmethod
    def items(self) -> Iterator[Item | Skipped | Remark]:
        """Stream every item, in any order (the plan sorts them), with remarks between them.

        Raises:
            RawDataError: the raw data are not in the form that this source reads.
        """

    @abstractmethod
    def example(self, item: Item) -> Example | Written | Skipped:
        """The item's example, or the reason why it has none. Pure. Called in a worker process.

        To add remarks on the example, return a :class:`Written` with the example and the remarks.
        """

    @abstractmethod
    def schema(self) -> str:
        """The schema (`.pbtxt` text) of examples made with these options."""

    def labels(self) -> Mapping[str, Sequence[str]]:
        """Label maps: for each feature, the class names in order of their numbers.

        Empty by default.
        """
        return {}

    def class_of(self, item: Item) -> str | None:  # noqa: ARG002 - a default
        """The class of an item. Every source has the option `stratify`, which needs the class
        before the build.

        None for an item without a class. If a subclass does not define this method, a build with
        `stratify` calls :meth:`example` twice for every item. From the first result, it reads the
        class: from a feature that has a label map, or from a feature such as `image/class/label`.
        """
        return None

    def describe(self) -> Mapping[str, str]:
        """The contents of the raw folder, for ``--dry-run``: ``{"layout": "flat"}``.

        Escape names from the data with :func:`tfrecreg.api.safe`. Empty by default.
        """
        return {}

    def codecs(self) -> Mapping[str, str]:
        """Versions of encoders and decoders that affect the bytes written, except zlib.

        They go into the manifest: ``{"pillow": "12.0.0"}``. Empty by default.
        """
        return {}

    def raw_path(self, split: str, key: str) -> str | None:  # noqa: ARG002 - a default
        """The raw file whose bytes are the record's `image/encoded`, for ``check --raw``.

        None if `image/encoded` is not a whole file. If a subclass does not define this method,
        ``check --raw`` says that records cannot be compared.
        """
        return None


def bundled_schema(package: str, name: str) -> str:
    """Read the schema ``<name>.pbtxt`` that the import package `package` includes.

    In an installed package, the file is next to the modules. In a checkout of this project, it is
    in the folder ``schemas`` next to the folder of the top package.

    Raises:
        PluginError: the package has no such file.
    """
    file = f"{name}.pbtxt"
    root = resources.files(package)
    places = [root.joinpath(file)]
    if isinstance(root, Path):
        checkout = root.parents[max(1, package.count("."))]
        places.append(checkout / "schemas" / file)
    for place in places:
        if place.is_file():
            return place.read_text(encoding="utf-8")
    looked = " and ".join(f"`{place}`" for place in places)
    raise PluginError(f"the package `{package}` has no schema `{file}`: looked for {looked}")


Count = Literal["one", "optional", "list"]
"""Number of values per record: exactly one, at most one, or any number."""

_COUNTS = {
    "one": "presence { min_fraction: 1 min_count: 1 }\n  shape {}",
    "optional": "value_count { min: 0 max: 1 }",
    "list": "value_count { min: 0 }",
}
_KINDS = {Kind.BYTES: "BYTES", Kind.FLOAT: "FLOAT", Kind.INT64: "INT"}


def feature_schema(
    name: str,
    kind: Literal["BYTES", "FLOAT", "INT"] | Kind,
    count: Count = "one",
    domain: str = "",
) -> str:
    """The text of a schema for one feature.

    Args:
        kind: the type in the schema, or the kind of the feature's values.
        domain: further text for the feature, such as ``int_domain { min: 0 }``.
    """
    type_name = _KINDS[kind] if isinstance(kind, Kind) else kind
    lines = [
        f"name: {json.dumps(name, ensure_ascii=False)}",
        f"type: {type_name}",
        _COUNTS[count],
        domain,
    ]
    return "feature {\n" + "".join(f"  {line}\n" for line in lines if line) + "}\n"


def image_schema(prefix: str, count: Count = "one", *, named: bool = False) -> str:
    """Schema text for an image: ``PREFIX/encoded``, ``/format``, ``/height`` and ``/width``.

    Args:
        named: if true, the text also has the features for filename, source id and SHA-256. With the
            prefix ``image``, these are the features that :func:`image_features` writes.
    """
    values = "".join(f"    value: {json.dumps(each)}\n" for each in IMAGE_FORMATS)
    name = json.dumps(f"{prefix}/format", ensure_ascii=False)
    formats = f"string_domain {{\n    name: {name}\n{values}  }}"
    names = ("filename", "source_id", "key/sha256") if named else ()
    return (
        feature_schema(f"{prefix}/encoded", "BYTES", count, "image_domain {}")
        + feature_schema(f"{prefix}/format", "BYTES", count, formats)
        + feature_schema(f"{prefix}/height", "INT", count, "int_domain { min: 1 }")
        + feature_schema(f"{prefix}/width", "INT", count, "int_domain { min: 1 }")
        + "".join(feature_schema(f"{prefix}/{name}", "BYTES", count) for name in names)
    )

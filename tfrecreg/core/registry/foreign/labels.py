"""Finds label maps next to shards, and the feature to which each map belongs.

In TensorFlow Datasets, the file name names the feature: ``label.labels.txt`` is for ``label``. A
build's ``labels.json`` names its features. Label maps for TensorFlow's object detection name no
feature: ``label_map.pbtxt`` (``item { id: 1 name: "cat" }``), ``classes.txt``, ``labels.txt`` (each
line has a name, with or without a number: ``3:cat``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from tfrecreg.core.storage.interface import Readable
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.storage.paths import is_web
from tfrecreg.core.values.documents import read_note
from tfrecreg.core.values.errors import StorageError, UsageError
from tfrecreg.core.values.shards import LabelMap
from tfrecreg.core.values.text import safe

_MOST_BYTES = 1 << 24
_MOST_CLASSES = 1_000_000
_ITEM = re.compile(r"^\s*item\s*:?\s*[{<]", re.MULTILINE)
_FREEBASE = re.compile(r"/[mg]/\w+")
"""Matches an id that Open Images writes into `name`; in that case, `display_name` has the name."""
_NUMBERED = re.compile(r"([0-9]{1,9}):\s*(.+)")
"""A line as TF-Slim writes it: ``0:cat``."""


def read_label_map(path: str) -> LabelMap:
    place = Path(path)
    storage = LocalStorage(place.parent)
    if storage.stat(place.name) is None:
        raise UsageError(f"there is no label map `{path}`")
    return parse_label_map(storage.read(place.name, limit=_MOST_BYTES), path)


def parse_label_map(data: bytes, path: str) -> LabelMap:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"the label map `{path}` is not UTF-8") from None
    if path.endswith((".pbtxt", ".prototxt")) or _ITEM.search(text):
        found = _items(text, path)
    else:
        plain = re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE).splitlines()
        lines = {number: line.strip() for number, line in enumerate(plain) if line.strip()}
        numbered = [match for line in lines.values() if (match := _NUMBERED.fullmatch(line))]
        found = {int(match[1]): match[2] for match in numbered}
        if len(found) != len(lines):
            found = lines
    if not found:
        raise UsageError(f"the label map `{path}` names no class")
    return found


def _items(text: str, path: str) -> LabelMap:
    from google.protobuf import text_format

    try:
        parsed = text_format.Parse(text, _message_class()(), allow_unknown_field=True)
    except (text_format.ParseError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200] or "nested too deeply"
        raise UsageError(f"the label map `{path}` does not parse: {reason}") from None
    found: dict[int, str] = {}
    for number, item in enumerate(parsed.item, 1):
        name = item.name
        if not name or (_FREEBASE.fullmatch(name) and item.display_name):
            name = item.display_name
        if not item.HasField("id") or not name:
            raise UsageError(f"the label map `{path}`: item {number} has no `id` or no `name`")
        if found.setdefault(item.id, name) != name:
            raise UsageError(
                f"the label map `{path}` has two names for the class {item.id}: "
                f"`{found[item.id]}` and `{name}`"
            )
    return found


@cache
def _message_class() -> Any:
    """The part of TensorFlow's message ``StringIntLabelMap`` that has the names of classes."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="label_map.proto", package="tfrecreg.labels")
    item, labels = file.message_type.add(name="Item"), file.message_type.add(name="LabelMap")
    one, many = field.LABEL_OPTIONAL, field.LABEL_REPEATED
    item.field.add(name="name", number=1, type=field.TYPE_STRING, label=one)
    item.field.add(name="id", number=2, type=field.TYPE_INT32, label=one)
    item.field.add(name="display_name", number=3, type=field.TYPE_STRING, label=one)
    items = labels.field.add(name="item", number=1, type=field.TYPE_MESSAGE, label=many)
    items.type_name = ".tfrecreg.labels.Item"
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    found = pool.FindMessageTypeByName("tfrecreg.labels.LabelMap")
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(found)
    older: Any = message_factory.MessageFactory(pool)  # protobuf before 4.22
    return older.GetPrototype(found)


_PATH = 1000
_NAME = re.compile(
    r"(?:.*[-_.])?label[-_]?map\.pbtxt|classes\.txt|labels\.txt", re.IGNORECASE | re.ASCII
)
_OF_FEATURE = ".labels.txt"
_OF_BUILD = "labels.json"
_FOR = ("image/object/class/label", "image/class/label", "label")
"""The features to which a map without a feature may belong, the most likely feature first."""

Place = tuple[Readable, str]


def names_beside(
    places: Iterable[Place],
    features: Callable[[], Collection[str]],
    notes: list[str],
    *,
    known: Collection[str] = (),
    in_place: bool = False,
) -> dict[str, list[str]]:
    """The class names of each feature, in order of their numbers, from the files next to shards.

    All files for one feature must agree. A label map that names no feature may also lie in the
    folder above. Such a map is used for one feature: the first feature of :data:`_FOR` that is in
    the records. If another file has the classes of this feature, the map is not used.
    """
    folders = {(storage.root, folder): storage for storage, folder in places}
    files = _files_in(folders)
    named = [each for each in files if each[1].endswith(_OF_FEATURE)]
    maps: list[Place] = []
    if not in_place:
        named += [each for each in files if _base(each[1]) == _OF_BUILD]
        maps = [each for each in files if _NAME.fullmatch(_base(each[1]))]
        if not maps:
            above = {(root, at.rpartition("/")[0]): each for (root, at), each in folders.items()}
            maps = [each for each in _files_in(above) if _NAME.fullmatch(_base(each[1]))]
    if not maps and not named:
        return {}
    of_records = features()
    found: dict[str, tuple[list[str], str]] = {}
    for storage, path in named:
        for named_feature, names in _of_named(storage, path, of_records):
            _keep(found, named_feature, names, path)
    own = frozenset((*found, *known))
    feature = next((name for name in _FOR if name in of_records), None)
    for storage, path in maps:
        if feature is None:
            shown = safe(_base(path))
            notes.append(
                f"`{shown}` is not used, because no record has `image/object/class/label`, "
                f"`image/class/label` or `label`; specify another feature: --labels FEATURE={shown}"
            )
        elif feature not in own:
            shown = f"{storage.root.rstrip('/')}/{path}"
            data = storage.read(path, limit=_MOST_BYTES)
            if _keep(found, feature, in_order(parse_label_map(data, shown), path), path):
                notes.append(
                    f"the class names of `{safe(feature)}` are from `{safe(shown, limit=_PATH)}`"
                )
    return {feature: names for feature, (names, _) in found.items()}


@dataclass(frozen=True)
class LabelsBeside:
    """The class names from label maps next to bare files. They are read on first use."""

    places: tuple[Place, ...] = ()
    features: Callable[[], Collection[str]] = frozenset

    @cached_property
    def found(self) -> tuple[Mapping[str, Sequence[str]], list[str]]:
        """The class names of each feature, and notes on the use of label maps."""
        notes: list[str] = []
        try:
            return names_beside(self.places, self.features, notes), notes
        except (StorageError, UsageError) as error:
            return {}, [f"label maps next to the shards are not used: {error.message}"]


def in_order(names: LabelMap, path: str) -> list[str]:
    """The class names, numbered from 0. A number without a class has an empty name."""
    last = max(names)
    if min(names) < 0 or last >= _MOST_CLASSES:
        raise UsageError(
            f"the label map `{path}` has classes from {min(names)} to {last}: expected numbers "
            f"from 0 to {_MOST_CLASSES - 1}"
        )
    return [names.get(number, "") for number in range(last + 1)]


def _keep(
    found: dict[str, tuple[list[str], str]], feature: str, names: list[str], path: str
) -> bool:
    known, other = found.setdefault(feature, (names, path))
    if known != names:
        raise UsageError(
            f"`/{other}` and `/{path}` give the classes of `{feature}` different names: choose the "
            f"right file with --labels {feature}=FILE"
        )
    return other is path


def _of_named(
    storage: Readable, path: str, features: Collection[str]
) -> Iterator[tuple[str, list[str]]]:
    data = storage.read(path, limit=_MOST_BYTES)
    if _base(path) == _OF_BUILD:
        try:
            known = read_note(data, dict[str, list[str]])
        except ValueError:
            return  # another program wrote the file
        yield from ((feature, names) for feature, names in known.items() if feature in features)
        return
    # TFDS replaces slashes in a name by dots, and joins the names of nested features by hyphens.
    name = _base(path).removesuffix(_OF_FEATURE)
    for feature in features:
        if name in (feature.replace("/", "."), feature.replace("/", "-")):
            yield feature, [line.strip() for line in data.decode("utf-8", "replace").splitlines()]


def _files_in(folders: Mapping[tuple[str, str], Readable]) -> list[Place]:
    found: list[Place] = []
    for (root, folder), storage in folders.items():
        if not is_web(root):  # a web server need not list a folder
            entries = storage.list(folder, recursive=False)
            paths = sorted(entry.path for entry in entries if entry.kind != "dir")
            found += ((storage, path) for path in paths)
    return found


def _base(path: str) -> str:
    return path.rpartition("/")[2]

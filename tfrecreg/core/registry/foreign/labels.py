"""Label maps that lie beside shards, and the feature that each is for.

Those of TensorFlow's object detection and of tools that export for it name no feature:
``label_map.pbtxt``, ``pets_label_map.pbtxt``, ``classes.txt``, ``labels.txt``. Those of TensorFlow
Datasets, ``label.labels.txt``, and the ``labels.json`` of a build do.

Files of class names.

A file is a label map of TensorFlow's object detection (``item { id: 1 name: "raccoon" }``), or text
with one name per line, numbered from 0 or as each line says (``3:cat``).
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
from tfrecreg.core.values.documents import read_note
from tfrecreg.core.values.errors import StorageError, UsageError
from tfrecreg.core.values.shards import LabelMap
from tfrecreg.core.values.text import safe

_MOST_FILE_BYTES = 1 << 24
_MOST_ITEMS = 1_000_000
_ITEM = re.compile(r"^\s*item\s*:?\s*[{<]", re.MULTILINE)
_FREEBASE = re.compile(r"/[mg]/\w+")
"""An id that Open Images has in place of a name, which then is the `display_name`."""
_NUMBERED = re.compile(r"([0-9]{1,9}):\s*(.+)")
"""A line as TF-Slim writes it: ``0:cat``."""


def read_label_map(path: str) -> LabelMap:
    """Read a file of class names."""
    place = Path(path)
    storage = LocalStorage(place.parent)
    if storage.stat(place.name) is None:
        raise UsageError(
            f"there is no label map `{safe(path)}`",
            hint="the path is relative to the folder in which the command runs",
        )
    return parse_label_map(storage.read(place.name, limit=_MOST_FILE_BYTES), path)


def parse_label_map(data: bytes, path: str) -> LabelMap:
    """The class names in a file."""
    text = data.decode("utf-8-sig", "surrogateescape")
    if path.endswith((".pbtxt", ".prototxt")) or _ITEM.search(text):
        found = _items(text, path)
    else:
        found = _lines(re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE))
    if not found:
        raise UsageError(f"the label map `{safe(path)}` names no class", hint=_FORM)
    return found


_FORM = 'it has `item { id: 1 name: "cat" }` for each class, or one name per line'


def _items(text: str, path: str) -> LabelMap:
    from google.protobuf import text_format

    try:
        text.encode("utf-8")
        parsed = text_format.Parse(text, _message_class()(), allow_unknown_field=True)
    except UnicodeEncodeError:
        raise UsageError(
            f"the label map `{safe(path)}` is not UTF-8",
            hint="`iconv -f latin1 -t utf-8` makes it so",
        ) from None
    except (text_format.ParseError, RecursionError) as error:
        reason = safe(" ".join(str(error).split()), limit=200) or "nested too deeply"
        raise UsageError(
            f"the label map `{safe(path)}` does not parse: {reason}", hint=_FORM
        ) from None
    found: dict[int, str] = {}
    for number, item in enumerate(parsed.item):
        if number >= _MOST_ITEMS:
            raise UsageError(f"the label map `{safe(path)}` has too many items", hint=_FORM)
        name = item.name
        if not name or (_FREEBASE.fullmatch(name) and item.display_name):
            name = item.display_name
        if not item.HasField("id") or not name:
            wanted = "id" if not item.HasField("id") else "name"
            raise UsageError(
                f"the label map `{safe(path)}`: item {number + 1} has no `{wanted}`", hint=_FORM
            )
        if found.setdefault(item.id, name) != name:
            raise UsageError(
                f"the label map `{safe(path)}` has two names for the class {item.id}: "
                f"`{safe(found[item.id], limit=60)}` and `{safe(name, limit=60)}`",
                hint="remove the wrong one",
            )
    return found


@cache
def _message_class() -> Any:
    """``StringIntLabelMap`` of TensorFlow's object detection: the fields that name classes."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="label_map.proto", package="tfrecreg.labels")
    item = file.message_type.add(name="Item")
    for number, (name, kind) in enumerate(
        (("name", kinds.TYPE_STRING), ("id", kinds.TYPE_INT32), ("display_name", kinds.TYPE_STRING))
    ):
        item.field.add(name=name, number=number + 1, type=kind, label=kinds.LABEL_OPTIONAL)
    whole = file.message_type.add(name="LabelMap")
    whole.field.add(
        name="item",
        number=1,
        type=kinds.TYPE_MESSAGE,
        type_name=".tfrecreg.labels.Item",
        label=kinds.LABEL_REPEATED,
    )
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    found = pool.FindMessageTypeByName("tfrecreg.labels.LabelMap")
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(found)
    older: Any = message_factory.MessageFactory(pool)  # protobuf before 4.22
    return older.GetPrototype(found)


def _lines(text: str) -> LabelMap:
    lines = {number: line.strip() for number, line in enumerate(text.splitlines()) if line.strip()}
    numbered = [match for line in lines.values() if (match := _NUMBERED.fullmatch(line))]
    found = {int(match[1]): match[2] for match in numbered}
    return found if len(found) == len(lines) else lines


_MOST_BYTES = 1 << 24
_MOST_CLASSES = 1_000_000
_PATH = 1000
_NAME = re.compile(
    r"(?:.*[-_.])?label[-_]?map\.pbtxt|classes\.txt|labels\.txt", re.IGNORECASE | re.ASCII
)
_OF_FEATURE = ".labels.txt"
_OF_BUILD = "labels.json"
_FOR = ("image/object/class/label", "image/class/label", "label")
"""The features that such a file may be for, the most likely first."""

Place = tuple[Readable, str]
"""A folder or file in a storage."""


def feature_of_maps(features: Collection[str]) -> str | None:
    """The feature whose classes a label map without a feature names; None if there is none."""
    return next((name for name in _FOR if name in features), None)


def label_files_in(storage: Readable, folder: str) -> list[str]:
    """The label maps in a folder, as paths, in order of their names."""
    return [path for path in _files_in(storage, folder) if _NAME.fullmatch(_base(path))]


def names_beside(
    places: Iterable[Place],
    features: Callable[[], Collection[str]],
    notes: list[str],
    *,
    known: Collection[str] = (),
    in_place: bool = False,
) -> dict[str, list[str]]:
    """Class names by feature, in order of their numbers, from the files beside shards.

    All files for one feature have to agree. A label map that names no feature counts for one that
    has no file of its own; it may lie in the folder above.
    """
    folders = {(storage.root, folder): storage for storage, folder in places}
    beside = {(root, folder): _files_in(each, folder) for (root, folder), each in folders.items()}
    files = [(folders[place], path) for place, paths in beside.items() for path in paths]
    named = [each for each in files if each[1].endswith(_OF_FEATURE)]
    maps: list[Place] = []
    if not in_place:
        named += [each for each in files if _base(each[1]) == _OF_BUILD]
        maps = [each for each in files if _NAME.fullmatch(_base(each[1]))]
        if not maps:
            above = {(root, at.rpartition("/")[0]): each for (root, at), each in folders.items()}
            for (_, folder), storage in above.items():
                maps += [(storage, path) for path in label_files_in(storage, folder)]
    if not maps and not named:
        return {}
    of_records = features()
    found: dict[str, tuple[list[str], str]] = {}
    for storage, path in named:
        for named_feature, names in _of_named(storage, path, of_records):
            _keep(found, named_feature, names, path)
    own = frozenset((*found, *known))
    feature = feature_of_maps(of_records)
    for storage, path in maps:
        if feature is None:
            shown = safe(_base(path))
            notes.append(
                f"`{shown}` is not used: no record has `image/object/class/label`, "
                f"`image/class/label` or `label`; name its feature: --labels FEATURE={shown}"
            )
        elif feature not in own:
            shown = f"{storage.root.rstrip('/')}/{path}"
            data = storage.read(path, limit=_MOST_BYTES)
            if _keep(found, feature, in_order(parse_label_map(data, shown), path), path):
                notes.append(
                    f"the names of `{safe(feature)}` are those of `{safe(shown, limit=_PATH)}`"
                )
    return {feature: names for feature, (names, _) in found.items()}


@dataclass(frozen=True)
class LabelsBeside:
    """The class names beside bare files, read when they are asked for."""

    places: tuple[Place, ...] = ()
    features: Callable[[], Collection[str]] = frozenset
    """Gives the features of the records."""

    @cached_property
    def found(self) -> tuple[Mapping[str, Sequence[str]], list[str]]:
        """The names by feature, and a line for each file that is used, or is not."""
        notes: list[str] = []
        try:
            return names_beside(self.places, self.features, notes), notes
        except (StorageError, UsageError) as error:
            return {}, [f"label maps beside the shards are not used: {error.message}"]


def in_order(names: LabelMap, path: str) -> list[str]:
    """The names in order of their numbers, empty where a number has none."""
    last = max(names)
    if min(names) < 0 or last >= _MOST_CLASSES:
        wrong = min(names) if min(names) < 0 else last
        raise UsageError(
            f"the label map `{safe(path, limit=_PATH)}` has a class of number {wrong}: expected 0 "
            f"to {_MOST_CLASSES - 1}",
            hint="class numbers count from 0 or 1",
        )
    try:
        "".join(names.values()).encode("utf-8")
    except UnicodeEncodeError as error:
        raise UsageError(
            f"the label map `{safe(path, limit=_PATH)}` is not UTF-8",
            hint="convert it: `iconv -f latin1 -t utf-8`",
        ) from error
    return [names.get(number, "") for number in range(last + 1)]


def _keep(
    found: dict[str, tuple[list[str], str]], feature: str, names: list[str], path: str
) -> bool:
    """Note the names of a feature; returns whether they are the first."""
    known, other = found.setdefault(feature, (names, path))
    if known != names:
        raise UsageError(
            f"`/{safe(other, limit=_PATH)}` and `/{safe(path, limit=_PATH)}` give the classes of "
            f"`{safe(feature)}` different names",
            hint=f"find out which is right: --labels {safe(feature)}=FILE",
        )
    return other is path


def _of_named(
    storage: Readable, path: str, features: Collection[str]
) -> Iterator[tuple[str, list[str]]]:
    """What a file says whose name or content names features."""
    data = storage.read(path, limit=_MOST_BYTES)
    if _base(path) == _OF_BUILD:
        try:
            known = read_note(data, dict[str, list[str]])
        except ValueError:
            return  # another program wrote the file
        yield from ((feature, names) for feature, names in known.items() if feature in features)
        return
    # TFDS writes slashes in a name as dots, and joins the names of nested features by hyphens.
    name = _base(path).removesuffix(_OF_FEATURE)
    for feature in features:
        if name in (feature.replace("/", "."), feature.replace("/", "-")):
            yield feature, [line.strip() for line in data.decode("utf-8", "replace").splitlines()]


def _files_in(storage: Readable, folder: str) -> list[str]:
    entries = storage.list(folder, recursive=False)
    return sorted(entry.path for entry in entries if entry.kind != "dir")


def _base(path: str) -> str:
    return path.rpartition("/")[2]

"""Files of class names.

A file is a label map of TensorFlow's object detection (``item { id: 1 name: "raccoon" }``), or text
with one name per line, numbered from 0.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.label_maps import LabelMap
from tfrecreg.core.values.text import safe

_MOST_FILE_BYTES = 1 << 24
_MOST_ITEMS = 1_000_000
_ITEM = re.compile(r"^\s*item\s*:?\s*[{<]", re.MULTILINE)
_FREEBASE = re.compile(r"/[mg]/\w+")
"""An id that Open Images has in place of a name, which then is the `display_name`."""


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
    return {number: line.strip() for number, line in enumerate(text.splitlines()) if line.strip()}

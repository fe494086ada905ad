"""What a source makes of a raw folder: listed by one object, made by another, as in a worker."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tfrecreg.errors import TfrecregError
from tfrecreg.sources.interface import Item, Remark, Skipped, Source, Written
from tfrecreg.storage.local import LocalStorage
from tfrecreg.typed_values import parse_options

__all__ = ["Made", "RawFolder"]


@dataclass
class Made:
    """What became of every item."""

    written: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By `split/key`: the values of each feature; a single one alone."""
    skipped: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By `split/key`: code and detail."""
    remarks: list[Remark] = field(default_factory=list)


class RawFolder:
    """A raw folder. A subclass names the source."""

    kind: ClassVar[type[Source]]

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(exist_ok=True)

    def put(self, name: str, data: bytes | str) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    def source(self, *options: str) -> Source:
        parsed = parse_options(self.kind.Options, list(options), of="source")
        return self.kind(LocalStorage(self.path), parsed)

    def made(self, *options: str) -> Made:
        """Every item, made by another object than it was listed by, as in a worker."""
        result = Made()
        source = self.source(*options)
        worker = pickle.loads(pickle.dumps(source))
        listed = list(source.items())
        assert list(self.source(*options).items()) == listed
        for item in listed:
            if isinstance(item, Remark):
                result.remarks.append(item)
                continue
            made = worker.example(item) if isinstance(item, Item) else item
            place = f"{item.split}/{item.key}"
            assert place not in result.written
            if isinstance(made, Skipped):
                result.skipped[place] = made.code, made.detail
                continue
            if isinstance(made, Written):
                result.remarks.extend(made.remarks)
                made = made.example
            result.written[place] = {
                name: each.values[0] if each.count == 1 else list(each.values)
                for name, each in made.items()
            }
        return result

    def error(self, *options: str) -> TfrecregError:
        """Why it is refused, in one line."""
        with pytest.raises(TfrecregError) as caught:
            self.made(*options)
        assert caught.value.exit_code == 2
        assert "\n" not in caught.value.message
        assert caught.value.hint
        return caught.value

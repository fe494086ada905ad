"""A raw folder of one source, and what the source makes of it."""

from __future__ import annotations

import os
import pickle
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tfrecreg.core.build.sources.interface import Item, Remark, Skipped, Source, Written
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import TfrecregError
from tfrecreg.core.values.typed_values import parse_options


@dataclass
class Made:
    """What became of every item."""

    written: dict[tuple[str, str], dict[str, list[Any]]] = field(default_factory=dict)
    """By split and key: the values of each feature."""
    skipped: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    """By split and key: code and detail."""
    remarks: list[Remark] = field(default_factory=list)

    def values(self, feature: str) -> list[Any]:
        """The values of one feature, an entry a record, in the order of the keys."""
        return [found[feature] for _, found in sorted(self.written.items())]

    def codes(self) -> list[str]:
        """The codes of skipped items, in their order."""
        return [code for code, _ in self.skipped.values()]

    def remarked(self) -> dict[str, str]:
        """The details of remarks by code."""
        return {remark.code: remark.detail for remark in self.remarks}


class RawSource:
    """A raw folder, and what a source makes of it."""

    def __init__(self, path: Path, kind: type[Source]) -> None:
        self.path, self.kind = path, kind
        path.mkdir(exist_ok=True)

    def put(self, name: str, data: bytes | str) -> Path:
        """Write a file of the raw folder."""
        path = self.path / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    def source(self, *options: str) -> Source:
        """The source as the parent has it."""
        parsed = parse_options(self.kind.Options, list(options), of="source")
        return self.kind(LocalStorage(self.path), parsed)

    def made(self, *options: str) -> Made:
        """Every item, made by a worker's copy; listed twice, with the same result."""
        result = Made()
        source = self.source(*options)
        worker = pickle.loads(pickle.dumps(source))
        entries = list(source.items())
        assert entries == list(self.source(*options).items())
        schema = {each.name for each in parse_schema(source.schema()).features}
        assert worker.schema() == source.schema()
        assert source.labels().keys() <= schema
        for item in entries:
            if isinstance(item, Remark):
                result.remarks.append(item)
                continue
            made = worker.example(item) if isinstance(item, Item) else item
            place = item.split, item.key
            assert place not in result.written
            if isinstance(made, Skipped):
                assert made[:2] == place
                result.skipped[place] = made.code, made.detail
                continue
            if isinstance(made, Written):
                result.remarks.extend(made.remarks)
                made = made.example
            assert made.keys() <= schema
            result.written[place] = {name: list(each.values) for name, each in made.items()}
        return result

    def error(self, *options: str) -> TfrecregError:
        """Why it is refused: one line and a hint, with exit code 2."""
        with pytest.raises(TfrecregError) as caught:
            list(self.source(*options).items())
        assert caught.value.exit_code == 2
        assert "\n" not in caught.value.message
        assert caught.value.hint
        return caught.value

"""A raw folder of one source, and its items, examples and errors."""

from __future__ import annotations

import os
import pickle
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from cases_support import case, with_case
from registry_support import write

from tfrecreg.core.build.sources.interface import Item, Remark, Skipped, Source, Written
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import TfrecregError
from tfrecreg.core.values.typed_values import parse_options


@dataclass
class Made:
    written: dict[tuple[str, str], dict[str, list[Any]]] = field(default_factory=dict)
    """By split and key: the values of each feature."""
    skipped: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    """By split and key: code, with its case, and detail."""
    remarks: list[Remark] = field(default_factory=list)
    """Their codes have their cases."""

    def values(self, feature: str) -> list[Any]:
        """The values of one feature, an entry a record, in the order of the keys."""
        return [found[feature] for _, found in sorted(self.written.items())]

    def codes(self) -> list[str]:
        """The codes of skipped items, with their cases, in their order."""
        return [code for code, _ in self.skipped.values()]

    def remarked(self) -> dict[str, str]:
        """The details of remarks by code."""
        return {remark.code: remark.detail for remark in self.remarks}


class RawSource:
    """A raw folder, read by a source. A subclass may name the source."""

    kind: type[Source]

    def __init__(self, path: Path, kind: type[Source] | None = None) -> None:
        self.path, self.kind = path, kind or self.kind
        path.mkdir(exist_ok=True)

    def put(self, name: str, data: bytes | str) -> Path:
        return write(self.path / os.fsdecode(name), data)

    def source(self, *options: str, **given: Any) -> Source:
        """The source, with options as a command has them or with their values."""
        parsed = parse_options(self.kind.Options, list(options), of="source")
        return self.kind(LocalStorage(self.path), replace(parsed, **given))

    def made(self, *options: str) -> Made:
        """Every item, made by a worker's copy."""
        result = Made()
        source = self.source(*options)
        entries, worker = list(source.items()), pickle.loads(pickle.dumps(source))
        schema = {each.name for each in parse_schema(source.schema()).features}
        assert worker.schema() == source.schema()
        assert source.labels().keys() <= schema
        for entry in entries:
            if isinstance(entry, Remark):
                result.remarks.append(with_case(entry))
                continue
            made = worker.example(entry) if isinstance(entry, Item) else entry
            place = entry.split, entry.key
            assert place not in result.written
            if isinstance(made, Skipped):
                assert made[:2] == place
                result.skipped[place] = case(made.code, made.detail), made.detail
                continue
            if isinstance(made, Written):
                result.remarks.extend(map(with_case, made.remarks))
                made = made.example
            assert made.keys() <= schema
            result.written[place] = {name: list(each.values) for name, each in made.items()}
        return result

    def error(self, *options: str, **keywords: Any) -> TfrecregError:
        """The error of listing and making: one line, with exit code 2."""
        with pytest.raises(TfrecregError) as caught:
            self.made(*options, **keywords)
        assert caught.value.exit_code == 2
        assert (caught.value.message + caught.value.hint).isprintable()
        return caught.value


class RawFiles(RawSource):
    """A raw folder, whose items are named ``split/key``; a single value stands alone."""

    def made(self, *options: str) -> Any:
        found = super().made(*options)
        written = {
            "/".join(place): {
                name: values[0] if len(values) == 1 else values for name, values in features.items()
            }
            for place, features in found.written.items()
        }
        skipped = {"/".join(place): why for place, why in found.skipped.items()}
        return replace(found, written=written, skipped=skipped)


class RawObjects(RawSource):
    """A raw folder of objects in images. Codes of skipped items and remarks have their cases."""

    def made(self, **options: Any) -> dict[str, Written | Skipped]:  # type: ignore[override]
        """Every item by its key, made by a worker's copy, which has no listing."""
        source = self.source(**options)
        entries, worker = list(source.items()), pickle.loads(pickle.dumps(source))
        found: dict[str, Written | Skipped] = {}
        for each in entries:
            made = worker.example(each) if isinstance(each, Item) else each
            if isinstance(made, Skipped):
                found[each.key] = with_case(made)
            elif isinstance(made, Written):
                found[each.key] = made._replace(remarks=[with_case(one) for one in made.remarks])
        return found

    def values(self, **options: Any) -> dict[str, tuple[Any, ...]]:
        """The features of the only image."""
        (made,) = self.made(**options).values()
        assert isinstance(made, Written), made
        return {name: feature.values for name, feature in made.example.items()}

    def remarks(self, **options: Any) -> list[Remark]:
        """The remarks of listing and making, without the counts of dropped objects."""
        entries = self.source(**options).items()
        found = [with_case(each) for each in entries if isinstance(each, Remark)]
        for made in self.made(**options).values():
            found += made.remarks if isinstance(made, Written) else ()
        return [each for each in found if each.code not in ("SRC047", "SRC048")]

    def skipped(self, **options: Any) -> Skipped:
        (found,) = (each for each in self.made(**options).values() if isinstance(each, Skipped))
        return found

    def codes(self, **options: Any) -> Counter[str]:
        """How often each code is remarked."""
        found: Counter[str] = Counter()
        for each in self.remarks(**options):
            found[each.code] += each.times
        return found

    def splits(self, **options: Any) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for each in self.source(**options).items():
            if isinstance(each, Item):
                found.setdefault(each.split, []).append(each.key)
        return found

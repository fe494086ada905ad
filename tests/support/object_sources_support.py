"""A raw folder of objects in images, and what a source makes of it."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tfrecreg.core.build.sources.interface import Item, Remark, Skipped, Source, Written
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import TfrecregError

UNFOLLOWED = {
    "all": "a symbolic link that leads nowhere or in a circle",
    "inside": "a symbolic link that leads out of the raw folder, nowhere or in a circle",
    "none": "a symbolic link, which `symlinks=none` does not follow",
}
"""What is said of a link that is not followed, by the option `symlinks`."""


class RawFolder:
    """A raw folder. A subclass names the source."""

    source_class: ClassVar[type[Source]]
    options_class: ClassVar[type[Any]]

    def __init__(self, path: Path) -> None:
        self.path = path

    def put(self, name: str, data: bytes | str) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    def source(self, **options: Any) -> Source:
        return self.source_class(LocalStorage(self.path), self.options_class(**options))

    def made(self, **options: Any) -> dict[str, Written | Skipped]:
        """Every item by its key, made as a worker does: by a copy without the listing."""
        source = self.source(**options)
        listed = list(source.items())
        worker = pickle.loads(pickle.dumps(source))
        found: dict[str, Written | Skipped] = {}
        for each in listed:
            if isinstance(each, Skipped):
                found[each.key] = each
            elif isinstance(each, Item):
                found[each.key] = worker.example(each)
        return found

    def values(self, **options: Any) -> dict[str, tuple[Any, ...]]:
        """The features of the only image."""
        (made,) = self.made(**options).values()
        assert isinstance(made, Written), made
        return {name: feature.values for name, feature in made.example.items()}

    def remarks(self, **options: Any) -> list[Remark]:
        """What the listing and the making remark, without the counts of dropped objects."""
        listed = [each for each in self.source(**options).items() if isinstance(each, Remark)]
        made = self.made(**options).values()
        listed += [each for item in made if isinstance(item, Written) for each in item.remarks]
        return [each for each in listed if each.code not in ("SRC047", "SRC048")]

    def skipped(self, **options: Any) -> Skipped:
        """The only item that is skipped."""
        (found,) = (each for each in self.made(**options).values() if isinstance(each, Skipped))
        assert found.detail.isprintable()
        return found

    def refusal(self, **options: Any) -> tuple[str, str]:
        """Message and hint of the error that listing and making end in."""
        with pytest.raises(TfrecregError) as caught:
            self.made(**options)
        assert caught.value.exit_code == 2
        for text in (caught.value.message, caught.value.hint):
            assert text.isprintable()
            assert not text.endswith(".")
        assert caught.value.message
        return caught.value.message, caught.value.hint

    def codes(self, **options: Any) -> dict[str, int]:
        """How often each code is remarked."""
        found: dict[str, int] = {}
        for each in self.remarks(**options):
            found[each.code] = found.get(each.code, 0) + each.times
        return found

    def splits(self, **options: Any) -> dict[str, list[str]]:
        """The keys of the items by split."""
        found: dict[str, list[str]] = {}
        for each in self.source(**options).items():
            if isinstance(each, Item):
                found.setdefault(each.split, []).append(each.key)
        return found

"""What a source makes of a raw folder: listed by one object, made by another, as in a worker."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest
from raw_source_support import RawSource

from tfrecreg.core.build.sources.interface import Remark, Source
from tfrecreg.core.values.errors import TfrecregError


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
        self._raw = RawSource(path, self.kind)
        self.path = path

    def put(self, name: str, data: bytes | str) -> Path:
        return self._raw.put(name, data)

    def source(self, *options: str) -> Source:
        return self._raw.source(*options)

    def made(self, *options: str) -> Made:
        """Every item, made by another object than it was listed by, as in a worker."""
        found = self._raw.made(*options)
        return Made(
            {
                f"{split}/{key}": {
                    name: values[0] if len(values) == 1 else values
                    for name, values in features.items()
                }
                for (split, key), features in found.written.items()
            },
            {f"{split}/{key}": why for (split, key), why in found.skipped.items()},
            found.remarks,
        )

    def error(self, *options: str) -> TfrecregError:
        """Why it is refused, in one line."""
        with pytest.raises(TfrecregError) as caught:
            self.made(*options)
        assert caught.value.exit_code == 2
        assert "\n" not in caught.value.message
        assert caught.value.hint
        return caught.value

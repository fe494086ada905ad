"""The records of an iterable, on disk: it can be read only once, and a build reads in its own
order.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tfrecreg.builtin.python_data.convert import Converter, ElementRecord
from tfrecreg.builtin.python_data.elements import CALLER
from tfrecreg.core.example.decode import decode
from tfrecreg.core.example.model import Example
from tfrecreg.core.plugins.guard import calling, reason_of
from tfrecreg.core.records.digests import record_digest
from tfrecreg.core.records.reading.access import Records
from tfrecreg.core.records.writer import ShardWriter
from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.values.errors import RawDataError
from tfrecreg.core.values.text import safe


@dataclass(frozen=True, slots=True)
class Spool:
    """The records of a split, in the order of the iterable. Picklable."""

    storage: Storage
    """Rooted at a folder that lasts as long as the build."""
    split: str

    @property
    def path(self) -> str:
        """Path of the file: a TFRecord file without compression, with an index."""
        return f"{self.split}.spool"

    def fill(
        self, converter: Converter, elements: Iterator[Any]
    ) -> Generator[ElementRecord, None, None]:
        """Write the record of each element and yield it. The file is there when the iterator
        ends.
        """
        with ShardWriter(self.storage, self.path, index_path=self._index) as writer:
            position = 0
            while True:
                try:
                    with calling(CALLER, "next"):
                        element = next(elements)
                except StopIteration:
                    break
                except Exception as error:
                    raise RawDataError(
                        f"split `{safe(self.split)}`: the iterable failed at element "
                        f"{position}: {reason_of(error)}",
                        hint="nothing was built; give an iterable that runs to its end",
                    ) from error
                made = converter.convert(position, element)
                writer.write(made.payload, digest=record_digest(made.payload), key=made.key)
                yield made
                position += 1

    def example(self, position: int) -> Example:
        """The example of an element."""
        return decode(_records(self)[position])

    @property
    def _index(self) -> str:
        return f"{self.split}.index"


@lru_cache(maxsize=1)
def _records(spool: Spool) -> Records:
    """The open file. Shards are made split by split, so one is enough."""
    shown = f"the spooled split {spool.split}"
    return Records(spool.path, index=spool._index, storage=spool.storage, name=shown)


def close_spools() -> None:
    """Close what this process has opened."""
    _records.cache_clear()

"""Joins elements into batches of NumPy arrays, and fetches records ahead of their use."""

from __future__ import annotations

import operator
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias

import numpy as np
import numpy.typing as npt

from tfrecreg.builtin.training.arrays import Elements
from tfrecreg.builtin.training.certificate import DIGEST_FEATURE, KEY_FEATURE, Certificate
from tfrecreg.builtin.training.order import Order
from tfrecreg.core.values.errors import UsageError

if TYPE_CHECKING:
    from tfrecreg.core.storage.far_files import FarFiles


Numbers: TypeAlias = list[SupportsIndex]

_PART = 64
"""Number of records that are requested together when reading ahead."""


class ReadsBatches:
    """A source that yields batches and can certify its epochs."""

    name: str
    """The name for messages, escaped."""
    elements: Elements
    """The form of its elements."""

    if TYPE_CHECKING:

        @property
        def identity(self) -> str: ...
        def order(self, *args: Any, **options: Any) -> Order: ...
        def from_state(self, *args: Any, **options: Any) -> Order: ...
        def __getitems__(self, records: Iterable[SupportsIndex]) -> list[Any]: ...

    def batches(
        self,
        size: int | None = None,
        order: Iterable[SupportsIndex] | None = None,
        *,
        global_batch: int | None = None,
        drop_remainder: bool = False,
    ) -> Iterator[dict[str, Any]]:
        """Yield batches of NumPy arrays, which JAX can use.

        A feature of fixed shape is one array, with the elements along its first axis. Decoded
        images are one array if all images of a batch have one shape. Any other feature is a list of
        arrays. A source with keys adds the list `record/key`. With ``damaged="skip"``, damaged
        records are missing from their batch. A batch without any sound record is left out.

        Args:
            size: elements per batch. Pass either `size` or `global_batch`, not both.
            order: numbers of the records to read, such as an :class:`Order`. If it is None, all
                records are read in order. For a mixture, the first epoch is read.
            global_batch: total number of elements that all hosts of an :class:`Order` read per
                batch. Batch number k has the same records for any number of hosts that divides
                `global_batch`.
            drop_remainder: whether to leave out a last batch that would be smaller.

        Raises:
            UsageError: `size` is less than 1, there is no schema, elements are payloads, or the
                hosts cannot share `global_batch` or the last batch equally.
            DamagedRecordError, RefusedError, StorageError: as for a single element.

        Example:
            >>> source = reg["mnist@1.0.0"].data_source("train", decode=True)
            >>> for batch in source.batches(100):
            ...     print(batch["image/encoded"].shape, batch["image/class/label"].shape)
            (100, 28, 28, 1) (100,)
            (100, 28, 28, 1) (100,)
        """
        chosen = self.order() if order is None else order
        numbers = numbers_of_batches(size, chosen, drop_remainder, global_batch)
        elements = self.elements
        if elements.columns is None:
            raise UsageError(
                f"no schema says which features of `{self.name}` can be stacked: use "
                "`__getitems__`, which returns a list of elements"
            )
        expect_free_names(elements)
        fixed = {each.name for each in elements.columns if each.is_fixed} | {DIGEST_FEATURE}
        return _stacked(self, self._ahead(chosen, numbers), fixed)

    def _ahead(self, order: object, numbers: Iterator[Numbers]) -> Iterator[Numbers]:
        """Yield the numbers unchanged; a source with a cache also requests the next records."""
        del order
        return numbers

    def reading_ahead(self, order: Order) -> Iterator[int]:
        """Yield the numbers of an order, and have the cache fetch the blocks of the next records.

        A sampler calls this method in its own process, which knows the order. The workers then find
        the blocks in the cache. Without a cache, nothing is requested.

        Example:
            >>> source = reg["mnist@1.0.0"].data_source("train")
            >>> order = source.order(seed=1)
            >>> list(source.reading_ahead(order)) == list(order)
            True
        """
        parts = numbers_of_batches(_PART, order, drop_remainder=False)
        return (operator.index(each) for part in self._ahead(order, parts) for each in part)

    def certificate(self) -> Certificate:
        """An empty certificate. Add each record that this source hands out, as shown for `report`.

        Example:
            >>> source = reg["mnist@1.0.0"].data_source("train", raw=True)
            >>> certificate = source.certificate()
            >>> certificate.add_payloads(source)
            >>> len(certificate)
            200
        """
        return Certificate(self.identity)


def _stacked(
    source: ReadsBatches, numbers: Iterator[Numbers], fixed: Collection[str]
) -> Iterator[dict[str, Any]]:
    for chosen in numbers:
        found = source.__getitems__(chosen)
        if source.elements.with_key:
            found = [{KEY_FEATURE: key, **element} for key, element in found]
        if found:
            yield stack(found, fixed, source.elements.images)


def numbers_of_batches(
    size: int | None,
    order: Iterable[SupportsIndex],
    drop_remainder: bool,
    global_batch: int | None = None,
) -> Iterator[Numbers]:
    """The numbers of an order, in lists of `size`."""
    if (size is None) == (global_batch is None):
        raise UsageError(
            "batches need `size` (of this host) or `global_batch` (of all hosts together)"
        )
    if size is None:
        assert global_batch is not None
        return _shares(order, global_batch, drop_remainder)
    if size < 1:
        raise UsageError(f"the batch size should be at least 1, found {size}")
    numbers, least = iter(order), size if drop_remainder else 1
    parts = iter(lambda: list(islice(numbers, size)), [])
    return takewhile(lambda part: len(part) >= least, parts)


def _shares(order: Iterable[SupportsIndex], size: int, drop_remainder: bool) -> Iterator[Numbers]:
    """The numbers of this host's records in each global batch.

    The first number goes to host 0, the next to host 1, and so on. So if `hosts` divides `size`,
    any `size` consecutive numbers contain `size / hosts` numbers of each host.
    """
    if not isinstance(order, Order):
        raise UsageError("`global_batch` needs an `Order`, which states the number of hosts")
    if size < 1 or size % order.hosts:
        raise UsageError(f"a global batch of {size} cannot be divided among {order.hosts} hosts")
    whole, rest = divmod(order.left, size)
    if rest and not drop_remainder and (rest < order.hosts or order.drop_remainder):
        raise UsageError(
            f"the last global batch of {rest} records cannot be divided among {order.hosts} hosts"
        )
    share = size // order.hosts
    count = whole + (rest > 0 and not drop_remainder)
    return (list(order[at * share : (at + 1) * share]) for at in range(count))


def expect_free_names(elements: Elements) -> None:
    """Refuse features whose names have another meaning in batches."""
    taken = {KEY_FEATURE: elements.with_key, DIGEST_FEATURE: elements.with_digest}
    for column in elements.columns or ():
        if taken.get(column.name):
            raise UsageError(
                f"the records have a feature `{column.name}`, but batches use this name for "
                "something else"
            )


def stack(
    elements: Sequence[Mapping[str, Any]], fixed: Collection[str], images: Collection[str]
) -> dict[str, Any]:
    """Join elements of the same form into a batch."""
    return {
        name: _stack([element[name] for element in elements])
        if name in fixed
        and (name not in images or len({np.shape(element[name]) for element in elements}) == 1)
        else [element[name] for element in elements]
        for name in elements[0]
    }


def _stack(values: list[Any]) -> npt.NDArray[Any]:
    if isinstance(values[0], bytes):
        found = np.empty(len(values), object)
        found[:] = values
        return found
    return np.stack(values)


def far_files_of(folder: str | os.PathLike[str] | None, limit: int | str | None) -> FarFiles | None:
    """The cache of shards behind URLs; None without a folder."""
    if folder is None and limit is None:
        return None
    from tfrecreg.core.storage.far_files import far_files

    return far_files(folder, limit)

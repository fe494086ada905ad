"""Elements joined to batches of NumPy arrays, as JAX takes them.

Reading ahead along an order, of shards behind URLs that are read through a cache.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol, SupportsIndex

import numpy as np
import numpy.typing as npt

from tfrecreg.builtin.training.certificate import DIGEST_FEATURE, KEY_FEATURE
from tfrecreg.builtin.training.elements import Elements
from tfrecreg.builtin.training.order import Order
from tfrecreg.builtin.training.selection import Selection
from tfrecreg.core.records.reading.shards import ShardRecords
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import safe

if TYPE_CHECKING:
    from tfrecreg.core.storage.far_files import FarFiles


class ReadsMany(Protocol):
    """A source that reads several elements in one call."""

    @property
    def name(self) -> str:
        """For messages, escaped."""
        ...

    def __getitems__(self, records: Iterable[SupportsIndex]) -> list[Any]:
        """The elements with these numbers."""
        ...


def numbers_of_batches(
    size: int | None,
    order: Iterable[SupportsIndex],
    drop_remainder: bool,
    global_batch: int | None = None,
) -> Iterator[list[SupportsIndex]]:
    """The numbers of an order, so many at a time."""
    if (size is None) == (global_batch is None):
        raise UsageError(
            "batches need a size: that of this host, or `global_batch`, that of all hosts",
            hint="`batches(256, order)` or `batches(order=order, global_batch=1024)`",
        )
    if global_batch is not None:
        return _shares(order, global_batch, drop_remainder)
    assert size is not None
    if size < 1:
        raise UsageError(
            f"the batch size should be at least 1, found {size}", hint="`batches(256)`"
        )
    numbers = iter(order)
    least = size if drop_remainder else 1
    return iter(lambda: _least(list(islice(numbers, size)), least), [])


def _least(numbers: list[SupportsIndex], least: int) -> list[SupportsIndex]:
    return numbers if len(numbers) >= least else []


def _shares(
    order: Iterable[SupportsIndex], size: int, drop_remainder: bool
) -> Iterator[list[SupportsIndex]]:
    """The numbers of this host in each global batch.

    Hosts are dealt numbers one by one, so a batch of `size` numbers that follow each other is
    `size / hosts` numbers of each, for any number of hosts that divides it.
    """
    if not isinstance(order, Order):
        raise UsageError(
            "`global_batch` needs an order, which knows how many hosts share it",
            hint="`batches(order=source.order(seed=1, host=0, hosts=4), global_batch=1024)`",
        )
    if size < 1 or size % order.hosts:
        raise UsageError(
            f"a global batch of {size} cannot be divided among {order.hosts} hosts",
            hint=f"`global_batch` should be a multiple of {order.hosts}",
        )
    whole, rest = divmod(order.left, size)
    if rest and not drop_remainder and (rest < order.hosts or order.drop_remainder):
        raise UsageError(
            f"the last global batch has {rest} records, which {order.hosts} hosts cannot share",
            hint="`drop_remainder=True` leaves it out, on all hosts",
        )
    share = size // order.hosts
    count = whole + (rest > 0 and not drop_remainder)
    return (list(order[at * share : (at + 1) * share]) for at in range(count))


def read_batches(
    source: ReadsMany, elements: Elements, numbers: Iterable[Sequence[SupportsIndex]]
) -> Iterator[dict[str, Any]]:
    """Batches of arrays, one for each list of numbers of which an element is left."""
    if elements.raw or elements.columns is None:
        raise UsageError(
            f"no schema says which features of `{source.name}` can be stacked",
            hint="name a schema with `schema=`, or read lists of elements with `__getitems__`",
        )
    expect_free_names(elements)
    fixed = {each.name for each in elements.columns if each.is_fixed} | {DIGEST_FEATURE}
    return _stacked(source, elements, numbers, fixed)


def expect_free_names(elements: Elements, more: Collection[str] = ()) -> None:
    """Refuse features whose names batches give to something else."""
    taken = [*more]
    if elements.with_key:
        taken.append(KEY_FEATURE)
    if elements.with_digest:
        taken.append(DIGEST_FEATURE)
    for column in elements.columns or ():
        if column.name in taken:
            raise UsageError(
                f"the records have a feature `{safe(column.name)}`, and batches use this name for "
                "something else",
                hint="leave it out: `data_source(features=…)`",
            )


def _stacked(
    source: ReadsMany,
    elements: Elements,
    numbers: Iterable[Sequence[SupportsIndex]],
    fixed: Collection[str],
) -> Iterator[dict[str, Any]]:
    for chosen in numbers:
        found = source.__getitems__(chosen)
        if elements.with_key:
            found = [{KEY_FEATURE: key, **element} for key, element in found]
        if found:
            yield stack(found, fixed, elements.images)


def stack(
    elements: Sequence[Mapping[str, Any]], fixed: Collection[str], images: Collection[str]
) -> dict[str, Any]:
    """Join elements of one form."""
    return {
        name: _stack([element[name] for element in elements])
        if name in fixed and (name not in images or _have_one_shape(elements, name))
        else [element[name] for element in elements]
        for name in elements[0]
    }


def _have_one_shape(elements: Sequence[Mapping[str, Any]], name: str) -> bool:
    return len({np.shape(element[name]) for element in elements}) == 1


def _stack(values: list[Any]) -> npt.NDArray[Any]:
    if isinstance(values[0], bytes):
        found = np.empty(len(values), object)
        found[:] = values
        return found
    return np.stack(values)


PART = 64
"""Number of records of a part, for reading ahead one by one."""


def cache_of(place: Sequence[str | int] | None) -> FarFiles | None:
    """The cache of a source from another process; None without one."""
    if place is None:
        return None
    from tfrecreg.core.storage.far_files import far_files

    folder, limit = place
    return far_files(str(folder), limit)


def read_ahead(
    shards: ShardRecords,
    selection: Selection,
    order: Order,
    numbers: Iterator[list[SupportsIndex]],
) -> Iterator[list[SupportsIndex]]:
    """The same lists of numbers; where there is a cache, those that follow are fetched into it."""
    far = shards.far
    if far is None:
        return numbers
    from tfrecreg.core.storage.block_cache import ahead

    # By blocks, what is beside a record is wanted soon, while all that are mixed fit.
    mixed = 0 if order.blocks is None else order.blocks.mixed * shards.mean_bytes
    soon = order.blocks is not None and far.fits(mixed)

    def request(part: list[SupportsIndex]) -> int:
        positions = np.array(part, np.int64)
        return shards.request(selection.numbers(positions).tolist(), soon=soon)

    return ahead(numbers, request)

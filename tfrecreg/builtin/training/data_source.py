"""A split as a sequence of records, without TensorFlow."""

from __future__ import annotations

import json
import operator
import pickle
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, SupportsIndex, overload

import numpy as np
import numpy.typing as npt
from blake3 import blake3

from tfrecreg.builtin.training.arrays import BlockReader, Elements
from tfrecreg.builtin.training.batches import Numbers, ReadsBatches, far_files_of
from tfrecreg.builtin.training.block_order import (
    DEFAULT_LANES,
    DEFAULT_WINDOW,
    Blocks,
    BlockSize,
    ValuesOf,
    weights_of,
)
from tfrecreg.builtin.training.certificate import (
    DIGEST_FEATURE,
    Certificate,
    EpochReport,
    RecordName,
    digest_of,
    expect_enough,
)
from tfrecreg.builtin.training.images import Decode, fitting, image_array
from tfrecreg.builtin.training.order import Order, weights_of_states
from tfrecreg.builtin.training.selection import (
    ChosenNumbers,
    Selection,
    SkippedRecord,
    SkippedRecords,
)
from tfrecreg.core.records.reading.shards import ShardRecords
from tfrecreg.core.registry.splits import even_parts
from tfrecreg.core.values.errors import (
    DamagedRecordError,
    NoSuchRecordError,
    RefusedError,
    UsageError,
)
from tfrecreg.core.values.text import count, safe


class DataSource(ReadsBatches, Sequence[Any]):
    """The records of a split, which are read by number. :func:`tfrecreg.data_source` makes one.

    It can be pickled, used after a fork, and shared by threads. Every read verifies checksums.

    Example:
        >>> source = reg["mnist@1.0.0"].data_source("train", decode=True)
        >>> source[0]["image/encoded"].shape, int(source[0]["image/class/label"])
        ((28, 28, 1), 0)
        >>> batches = source.batches(64, source.order(seed=1))
        >>> [len(batch["image/class/label"]) for batch in batches]
        [64, 64, 64, 8]
    """

    def __init__(
        self,
        name: str,
        shards: ShardRecords,
        selection: Selection,
        elements: Elements,
        identity: str,
        decode: Decode | None = None,
        skipped: SkippedRecords | None = None,
        values: ValuesOf | None = None,
    ) -> None:
        self.name = name
        """The name as the user wrote it, escaped."""
        self._shards = shards
        self._selection = selection
        self.elements = elements
        self._identity = identity
        self._decode = decode
        self._values = values
        self._read_many = BlockReader(elements.columns)
        # Without a schema, only this set decides whether a feature holds one image or several.
        self._single = frozenset(
            elements.images
            if elements.columns is None
            else (each.name for each in elements.columns if each.is_single)
        )
        self._skipped = skipped
        if skipped is None and elements.damaged == "skip":
            self._skipped = SkippedRecords()

    def __len__(self) -> int:
        return len(self._selection)

    @overload
    def __getitem__(self, record: SupportsIndex) -> Any: ...
    @overload
    def __getitem__(self, record: slice) -> DataSource: ...
    def __getitem__(self, record: SupportsIndex | slice) -> Any:
        """One element. A slice gives another source, and reads nothing.

        Raises:
            NoSuchRecordError: the number is out of range. It is also an IndexError.
            DamagedRecordError: the record's checksums do not match. ``damaged="skip"`` does not
                prevent this error.
            RefusedError: the record is not an Example, does not fit the schema, or holds an image
                that does not decode.
            StorageError: its shard cannot be read, or has changed since it was opened.
        """
        if isinstance(record, slice):
            return self._with(self._selection.part(record))
        number = self._number(record)
        return self._element(number, self._shards.payload(number))

    def __getitems__(self, records: Iterable[SupportsIndex]) -> list[Any]:
        """The elements with these numbers, in the given order. One call reads a batch.

        Records are read in the order of their positions, and neighbouring records are read
        together. With ``damaged="skip"``, the list leaves out damaged records.

        Raises:
            NoSuchRecordError, DamagedRecordError, RefusedError, StorageError: as for one record.
        """
        return [each for each in self.elements_or_none(records) if each is not None]

    def elements_or_none(self, records: Iterable[SupportsIndex]) -> list[Any | None]:
        """The elements with these numbers, with None in place of each skipped damaged record.

        Raises:
            NoSuchRecordError, DamagedRecordError, RefusedError, StorageError: as for one record.
        """
        wanted, count = [operator.index(record) for record in records], len(self)
        for position in wanted:
            if not -count <= position < count:
                self._number(position)
        positions = np.array(wanted, np.int64)
        positions[positions < 0] += count
        return list(self._elements_of(self._selection.numbers(positions).tolist()))

    def __iter__(self) -> Iterator[Any]:
        for numbers in self._selection.parts():
            for block in self._shards.blocks(numbers):
                yield from (each for each in self._elements_of(block) if each is not None)

    def __repr__(self) -> str:
        return f"<DataSource {len(self)} records of {self._named}>"

    @property
    def where(self) -> str | None:
        """The condition that selected its records; None without one."""
        return self._selection.where

    @property
    def _named(self) -> str:
        asked = "" if self.where is None else f" where {safe(self.where, limit=200)}"
        return f"{self.name}{asked}"

    @property
    def identity(self) -> str:
        """Hex digest of the records and their order. The state of an order contains this digest."""
        ranges = [(each.start, each.stop, each.step) for each in self._selection.ranges]
        text = f"{self._identity}\n{json.dumps(ranges)}\n{self._selection.chosen_digest}"
        return blake3(text.encode("ascii")).hexdigest(16)

    @property
    def skipped(self) -> tuple[SkippedRecord, ...]:
        """The damaged records that this source has left out so far, including those of its parts
        and of its copies in worker processes on this machine.

        Raises:
            StorageError: the list, a temporary file, cannot be read.
        """
        return self._skipped.records() if self._skipped is not None else ()

    def key(self, record: SupportsIndex) -> str | None:
        """The key of a record; None if no index has the key.

        Raises:
            NoSuchRecordError: the number is out of range.
            ManifestError, StorageError: the index is damaged, or cannot be read.

        Example:
            >>> reg["mnist@1.0.0"].data_source("train").key(0)
            '00111'
        """
        return self._shards.key(self._number(record))

    def _ahead(self, order: object, numbers: Iterator[Numbers]) -> Iterator[Numbers]:
        far = self._shards.far
        # Numbers of an iterator are not consumed in advance.
        if far is None or not isinstance(order, Order):
            return numbers
        from tfrecreg.core.storage.block_cache import ahead

        # With blocks, the neighbours of a record are read soon, if the cache holds all mixed
        # records.
        mixed = 0 if order.blocks is None else order.blocks.mixed * self._shards.mean_bytes
        soon = order.blocks is not None and far.fits(mixed)

        def request(part: Numbers) -> int:
            positions = np.array(part, np.int64)
            return self._shards.request(self._selection.numbers(positions).tolist(), soon=soon)

        return ahead(numbers, request)

    def with_features(self, features: Collection[str]) -> DataSource:
        """A source of the same records, whose elements have only these features of the schema.

        Raises:
            UsageError: there is no schema, or the schema lacks one of these features.
        """
        return self._with(self._selection, self.elements.only(features))

    def even_splits(self, n: int, *, drop_remainder: bool = False) -> list[DataSource]:
        """Divide the source among `n` readers, as `tfds.even_splits` does.

        Each part of an expression such as ``train+test`` is divided on its own.

        Args:
            n: how many parts.
            drop_remainder: whether all parts get the same number of records. The rest is left out.

        Raises:
            UsageError: `n` is less than 1.

        Example:
            >>> source = reg["mnist@1.0.0"].data_source("train")
            >>> [len(part) for part in source.even_splits(3)]
            [67, 67, 66]
        """
        if n < 1:
            raise UsageError(f"a source cannot be divided into {n} parts")
        divided = [
            even_parts(each, n, drop_remainder=drop_remainder) for each in self._selection.ranges
        ]
        chosen = self._selection.chosen
        return [self._with(Selection([parts[at] for parts in divided], chosen)) for at in range(n)]

    def order(
        self,
        seed: int | None = None,
        epoch: int = 0,
        *,
        host: int = 0,
        hosts: int = 1,
        drop_remainder: bool = False,
        weights: str | npt.ArrayLike | None = None,
        block: BlockSize | None = None,
        block_window: int = DEFAULT_WINDOW,
        block_lanes: int = DEFAULT_LANES,
    ) -> Order:
        """The numbers of the records that one host reads in an epoch, in the order of reading.

        The shares of all hosts are disjoint and together contain all records. With
        `drop_remainder`, up to ``hosts - 1`` records are left out. With `weights`, records are
        drawn with replacement, in proportion to their weights, and there are as many draws as
        records.

        Args:
            seed: seed of the permutation. None keeps the order of the records.
            epoch: number of the epoch. Each epoch has its own permutation.
            host: number of this host, from 0.
            hosts: number of hosts that share the records.
            drop_remainder: whether all hosts get the same number of records.
            weights: ``"class"`` draws all classes equally often. An SQL expression is evaluated on
                the whole target, as by `tfrecreg query`. These two need the extra `query`. A list
                has one weight per record. None makes a permutation.
            block: how many consecutive records form a block, or its approximate size, such as
                ``"16MiB"``. Records are then shuffled by blocks, so that one read from a store gets
                many records. None to shuffle all records.
            block_window: how many blocks are shuffled together in a lane.
            block_lanes: number of lanes, from which records are taken in turn. If it is a multiple
                of the number of hosts, no two hosts read the same block.

        Raises:
            UsageError: there are more hosts than records, `host` is not below `hosts`, `block` is
                not a size, a weight is negative or not finite, all weights are zero, or `weights`
                or `block` is given without a seed.
            RefusedError: an expression would be evaluated on damaged records.
            MissingExtraError: DuckDB or pyarrow is not installed.

        Example:
            >>> source = reg["mnist@1.0.0"].data_source("train")
            >>> len(source.order(seed=1, epoch=3, host=0, hosts=2))
            100
            >>> balanced = source.order(seed=1, weights="class")
        """
        expect_enough(len(self), hosts, self.name)
        return Order(
            len(self),
            self.identity,
            seed=seed,
            epoch=epoch,
            host=host,
            hosts=hosts,
            drop_remainder=drop_remainder,
            where=self.where,
            weights=weights_of(weights, self.name, self._selection, self._values),
            blocks=Blocks.of_size(
                block, block_window, block_lanes, self._shards.mean_bytes, self.name
            ),
        )

    def from_state(
        self,
        state: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        host: int = 0,
        hosts: int = 1,
        weights: npt.ArrayLike | None = None,
    ) -> Order:
        """The rest of an epoch, from a result of `Order.state`.

        Args:
            state: the state of any host, if all hosts consumed the same number of records.
                Otherwise, a list with the states of all hosts.
            host: number of this host.
            hosts: number of hosts that now share the rest.
            weights: the list of weights from which the order was made. Weights from an expression
                are computed again.

        Raises:
            UsageError: `state` is not a state, belongs to other records, was made with another
                condition or other weights, or lacks the states of some hosts.

        Example:
            >>> source = reg["mnist@1.0.0"].data_source("train")
            >>> state = source.order(seed=1).state(50)
            >>> len(source.from_state(state))
            150
        """
        states = [state] if isinstance(state, Mapping) else list(state)
        by = weights_of_states(states) if weights is None else weights
        drawn = weights_of(by, self.name, self._selection, self._values)
        same: dict[str, Any] = {"host": host, "hosts": hosts, "where": self.where, "weights": drawn}
        return Order(len(self), self.identity, seed=0, epoch=0, **same).resumed(states)

    def report(self, certificate: Certificate) -> EpochReport:
        """Whether an epoch handed out every record of this source exactly once.

        Args:
            certificate: holds the digests of all records that were handed out on all hosts.

        Raises:
            UsageError: it is about another source.
            DamagedRecordError: a shard without an index has a damaged record.
            ManifestError: an index is damaged.
            StorageError: a shard or index cannot be read.

        Example:
            >>> source = reg["mnist@1.0.0"].data_source("train", with_digest=True)
            >>> certificate = source.certificate()
            >>> for batch in source.batches(64):
            ...     certificate.add(batch["record/digest"])
            >>> print(source.report(certificate))
            all 200 records of mnist@1.0.0, each once
        """
        return certificate._report(self._named, self.identity, self.digests(), self.record_name)

    def digests(self) -> npt.NDArray[np.uint8]:
        """The digests of its records, shape (n, 16). Shards without an index are read whole.

        Raises:
            DamagedRecordError, ManifestError, StorageError: for the same reasons as in
                :meth:`report`.
        """
        parts = [np.empty((0, 16), np.uint8)]
        for numbers in self._selection.parts():
            inside = self._shards.inside(numbers)
            parts += [self._shards.digests(each)[records] for each, records in inside]
        return np.concatenate(parts)

    def record_name(self, position: int) -> RecordName:
        """A record, for people.

        Raises:
            ManifestError, StorageError: the index of its shard is damaged, or cannot be read.
        """
        return self._named_record(self._selection.number(position))

    def _named_record(self, number: int) -> RecordName:
        key = self._shards.key(number)
        return RecordName(*self._place(number), None if key is None else safe(key, limit=200))

    def _place(self, number: int) -> tuple[str, int]:
        """The escaped name of a record's shard, and the number of the record in that shard."""
        shard, record = self._shards.locate(number)
        return safe(self._shards.places[shard].name, limit=1000), record

    def _with(self, selection: Selection, elements: Elements | None = None) -> DataSource:
        same = (elements or self.elements, self._identity, self._decode, self._skipped)
        return DataSource(self.name, self._shards, selection, *same, self._values)

    def _number(self, record: SupportsIndex) -> int:
        position = operator.index(record)
        if not -len(self) <= position < len(self):
            raise NoSuchRecordError(
                f"there is no record {position} in `{self.name}`: the source has "
                f"{count(len(self), 'record')}"
            )
        return self._selection.number(position % len(self))

    def _elements_of(self, numbers: Sequence[int]) -> Iterator[Any | None]:
        """The elements of records, with None in place of each skipped damaged record."""
        payloads = self._shards.payloads(numbers)
        sound = [each for each in payloads if isinstance(each, bytes)]
        read: Iterator[Any] = repeat(None)
        if not self.elements.sequence:
            read = iter(sound if self.elements.raw else self._read_many(sound))
        for number, payload in zip(numbers, payloads, strict=True):
            if isinstance(payload, DamagedRecordError):
                self._skip(number, payload)
                yield None
            else:
                yield self._element(number, payload, next(read))

    def _skip(self, number: int, error: DamagedRecordError) -> None:
        if self._skipped is None:
            raise error
        reason = error.message.partition(" is damaged: ")[2] or error.message
        count = self._skipped.add(number, SkippedRecord(*self._place(number), reason))
        if count > self.elements.max_damaged:
            raise RefusedError(
                f"{count} damaged records of `{self.name}` were left out, but `max_damaged` allows "
                f"{self.elements.max_damaged}; the last: {error.message}",
                hint=error.hint,
            ) from error

    def _element(self, number: int, payload: bytes, element: Any = None) -> Any:
        """Build one element. Pass `element` if a block reader already parsed the payload."""
        elements = self.elements
        if elements.raw:
            element = payload
        else:
            try:
                if element is None:
                    element = elements.read(payload)
                if elements.with_digest:
                    element[DIGEST_FEATURE] = digest_of(payload)
                decode = fitting(self._decode, elements)
                for image in elements.images:
                    if image in element and decode is not None:
                        single, value = image in self._single, element[image]
                        element[image] = image_array(image, value, decode, single=single)
            except RefusedError as error:  # its message lacks the subject, the record
                shard, record, key = self._named_record(number)
                named = "" if key is None else f", with the key `{key}`,"
                raise RefusedError(
                    f"record {record} of `{shard}`{named} {error.message}", hint=error.hint
                ) from error.__cause__
        return (self._shards.key(number), element) if elements.with_key else element

    def __reduce__(self) -> tuple[object, ...]:
        # Compressed: the paths of shards differ in few characters. The object that evaluates
        # expressions stays here: another process would make the catalog a second time.
        skipped = None if self._skipped is None else self._skipped.path
        far = None if self._shards.far is None else self._shards.far.place
        ranges, chosen = self._selection.ranges, self._selection.chosen
        state = self.name, self._shards.places, ranges, self.elements, self._identity, skipped, far
        return _restored, (zlib.compress(pickle.dumps(state)), self._decode, chosen)


def _restored(packed: bytes, decode: Decode | None, chosen: ChosenNumbers | None) -> DataSource:
    name, places, ranges, elements, identity, skipped, far = pickle.loads(zlib.decompress(packed))
    shards = ShardRecords(places, far_files_of(*far or (None, None)))
    known = None if skipped is None else SkippedRecords(skipped)
    return DataSource(name, shards, Selection(ranges, chosen), elements, identity, decode, known)

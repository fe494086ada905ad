"""An order whose batches hold records of similar length.

Records are dealt to buckets by their length. In each epoch they are permuted, as without buckets;
what is left after the last whole batch is put aside; the others are sorted by bucket, stably, and
cut into batches, of which some have records of two buckets that follow each other. The batches are
permuted in turn, and what was put aside comes last. So it is chance what is in a last smaller
batch, and not the longest records.

``docs/formats.md`` has the formula. It never changes after 1.0, since saved states depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from blake3 import blake3

from tfrecreg.errors import UsageError
from tfrecreg.text import safe
from tfrecreg.training.consumed import LENGTHS_HINT, integer_of, one_each
from tfrecreg.training.permutation import Permutation, RecordNumbers

DEFAULT_BUCKETS = 16


class LengthBuckets:
    """Records in buckets, for batches of one size. Picklable.

    Args:
        lengths: of the records, finite, shape (n,).
        by: what they are by: an expression, or that they are given.
        buckets: how many, with as many records each; or the lengths at which the next one begins.
        global_batch: the size of the batch that all hosts have together.
        name: of the records, for messages, escaped.

    Raises:
        UsageError: they are not such numbers.
    """

    def __init__(
        self,
        lengths: npt.ArrayLike,
        by: str,
        buckets: int | Sequence[float],
        global_batch: int,
        name: str,
    ) -> None:
        numbers = one_each("lengths", lengths, LENGTHS_HINT)
        bad = np.flatnonzero(~np.isfinite(numbers))
        if len(bad):
            shown = "NULL" if np.isnan(numbers[bad[0]]) else f"{numbers[bad[0]]:g}"
            raise UsageError(
                f"the length of record {bad[0]} of `{name}` is {shown}, by `{safe(by, limit=200)}`",
                hint="lengths are finite; coalesce(x, 0) gives 0 for NULL",
            )
        if global_batch < 1:
            raise UsageError(
                f"`global_batch` should be at least 1, found {global_batch}",
                hint='`order(seed=1, bucket_by="tokens", global_batch=256)`',
            )
        self.by, self.global_batch = by, global_batch
        self.buckets: int | list[float]
        """How many, or the lengths at which the next one begins."""
        if not isinstance(buckets, Iterable):
            buckets = integer_of("buckets", buckets)
            if buckets < 1:
                raise UsageError(
                    f"`buckets` should be at least 1, found {buckets}", hint="`buckets=16`"
                )
            self.buckets = buckets
            ids = np.empty(len(numbers), np.int64)
            ranks = np.arange(len(numbers), dtype=np.int64)
            ids[np.argsort(numbers, kind="stable")] = ranks * buckets // max(1, len(numbers))
        else:
            self.buckets = [float(each) for each in buckets]
            if sorted(set(self.buckets)) != self.buckets:
                raise UsageError(
                    "`buckets` should be lengths in ascending order", hint="`buckets=[16, 32, 64]`"
                )
            ids = np.searchsorted(np.array(self.buckets, np.float64), numbers, side="right")
        self.ids: RecordNumbers = ids.astype(np.int64)
        """The bucket of each record."""

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def digest(self) -> str:
        """Hex digest of the buckets of all records. States of orders hold it."""
        return blake3(self.ids.astype("<i8").tobytes()).hexdigest(16)

    def said(self) -> dict[str, Any]:
        """What states say of them."""
        return {
            "by": self.by,
            "digest": self.digest,
            "buckets": self.buckets,
            "global_batch": self.global_batch,
        }


class Bucketed:
    """The records of an epoch by their places, in batches of similar length.

    Args:
        buckets: of the records.
        seed: any integer.
        epoch: any integer.
    """

    def __init__(self, buckets: LengthBuckets, seed: int, epoch: int) -> None:
        self._buckets, self._seed, self._epoch = buckets, seed, epoch
        self._batches = len(buckets) // buckets.global_batch

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_sorted"}

    @cached_property
    def _sorted(self) -> RecordNumbers:
        """The records by bucket, and then those that are put aside."""
        count = len(self._buckets)
        found = Permutation(count, self._seed, self._epoch)(np.arange(count, dtype=np.int64))
        whole = found[: self._batches * self._buckets.global_batch]
        whole[:] = whole[np.argsort(self._buckets.ids[whole], kind="stable")]
        return found

    def __call__(self, places: RecordNumbers) -> RecordNumbers:
        """The records at these places.

        Args:
            places: shape (m,).

        Returns:
            Shape (m,). The first call takes the time and memory of sorting all records.
        """
        batches, inside = np.divmod(places, self._buckets.global_batch)
        whole = batches < self._batches
        permutation = Permutation(self._batches, self._seed, self._epoch)
        batches[whole] = permutation(batches[whole])
        found: RecordNumbers = self._sorted[batches * self._buckets.global_batch + inside]
        return found

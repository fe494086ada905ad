"""The methods of a data source that make orders of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy.typing as npt

from tfrecreg.errors import UsageError
from tfrecreg.training.consumed import expect_enough
from tfrecreg.training.elements import Elements
from tfrecreg.training.order import Order
from tfrecreg.training.packed_batches import packed_columns
from tfrecreg.training.packing import WINDOW, PackedOrder, Packs, pack_of_states
from tfrecreg.training.record_values import LengthsLike
from tfrecreg.training.weights import GIVEN


class _Source(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def elements(self) -> Elements: ...

    def order(self, seed: int | None = None, epoch: int = 0) -> Order: ...

    def _packs(self, lengths: LengthsLike, to: int, window: int) -> Packs: ...


class MakesRows:
    """A source whose records can be packed into rows."""

    def packed_order(
        self: _Source,
        to: int,
        by: LengthsLike | None = None,
        *,
        seed: int | None = None,
        epoch: int = 0,
        host: int = 0,
        hosts: int = 1,
        drop_remainder: bool = False,
        window: int = WINDOW,
    ) -> PackedOrder:
        """The rows that one host reads in an epoch: several short records make one row.

        Records are permuted by `seed` and `epoch`; each goes into the first row with room for it,
        among those of so many records that follow each other. Rows are dealt to hosts. Every
        record comes once. `batches(size, order)` gives batches of rows.

        Args:
            to: the number of values of a row.
            by: the lengths of records: the name of a feature of varying length, for the number of
                its values; an expression in SQL; a function of an element, for which all are read;
                or a number for each record. The first two need the extra `query`. May be left out
                if only one feature of numbers has a varying length.
            seed: of the permutation; None for the order of the records.
            epoch: each has another permutation.
            host: number of this host, from 0.
            hosts: number of hosts that share the rows.
            drop_remainder: whether all hosts get the same number of rows.
            window: number of records whose rows are filled together.

        Raises:
            UsageError: a record is longer than a row, lengths are not whole numbers, `host` is not
                one of `hosts`, or there are more hosts than rows.
            RefusedError: an expression would be evaluated on damaged records.
            MissingExtraError: DuckDB or pyarrow is not installed.

        Example:
            >>> source = reg["mnist@1.0.0"].data_source("train")
            >>> lengths = [1 + at % 8 for at in range(200)]
            >>> order = source.packed_order(16, lengths, seed=1, host=0, hosts=2)
            >>> max(sum(lengths[record] for record in row) for row in order)
            16
        """
        if by is None:
            found = [each.name for each in packed_columns(self.elements.columns or ())]
            if len(found) != 1:
                raise UsageError(
                    f"`{self.name}` has {len(found) or 'no'} features of numbers whose length "
                    "varies, and `by` does not name one",
                    hint='`packed_order(2048, by="tokens", seed=1)`',
                )
            (by,) = found
        packs = self._packs(by, to, window)
        whole = self.order(seed, epoch)
        order = PackedOrder(whole, packs, host=host, hosts=hosts, drop_remainder=drop_remainder)
        expect_enough(order.rows, hosts, self.name, "rows")
        return order

    def packed_order_from_state(
        self: _Source,
        state: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        host: int = 0,
        hosts: int = 1,
        by: Callable[[Any], float] | npt.ArrayLike | None = None,
    ) -> PackedOrder:
        """The rest of an epoch, from a result of `PackedOrder.state`.

        Args:
            state: of one host, if all hosts have consumed as many rows; else of all of them.
            host: number of this host.
            hosts: number of hosts that share the rest; it may differ from before.
            by: the lengths that the order was made with, if they were not a name or an expression.

        Raises:
            UsageError: it is not a state of rows, that of other records or lengths, or some hosts
                are missing.

        Example:
            >>> source = reg["mnist@1.0.0"].data_source("train")
            >>> lengths = [1 + at % 8 for at in range(200)]
            >>> state = source.packed_order(16, lengths, seed=1).state(50)
            >>> len(source.packed_order_from_state(state, by=lengths))
            7
        """
        states = [state] if isinstance(state, Mapping) else list(state)
        pack = pack_of_states(states)
        if pack is None:
            raise UsageError(
                "this is not the state of an order of rows",
                hint="`source.from_state(state)` takes that of an order of records",
            )
        if by is None and pack["by"] == GIVEN:
            raise UsageError(
                "the state belongs to an order whose lengths were given as numbers",
                hint="pass them again: `packed_order_from_state(state, by=…)`",
            )
        packs = self._packs(pack["by"] if by is None else by, pack["to"], pack["window"])
        whole = self.order(states[0]["seed"], states[0]["epoch"])
        return PackedOrder.from_states(states, whole, packs, host=host, hosts=hosts)

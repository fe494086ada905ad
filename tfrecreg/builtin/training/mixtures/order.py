"""The share of one host in an epoch of a mixture, and its state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tfrecreg.builtin.training.orders.order import Order
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import safe

MIXTURE = "mixture"
"""The key of a state that describes the mixture."""
_MEMBER = {
    "source": "the identity of the records",
    "records": "the number of records",
    "count": "the number of places of an epoch",
}


class MixtureOrder(Order):
    """The places of a mixture that one host reads in an epoch.

    :meth:`tfrecreg.builtin.training.mixtures.source.Mixture.order` makes them.
    """

    mixture: Mapping[str, Any] = {}
    """What states say of the mixture."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if self.epoch < 0:
            raise UsageError(
                f"`epoch` should be a number from 0 on, found {self.epoch}",
                hint="the places of a mixture begin with its first epoch, the epoch 0",
            )

    def _draw(self) -> Callable[[npt.NDArray[np.int64]], npt.NDArray[np.int64]]:
        return _Shift(self.epoch * self.records)

    def __repr__(self) -> str:
        return (
            f"<MixtureOrder of {len(self)} of {self.records} places, epoch {self.epoch}, "
            f"host {self.host} of {self.hosts}>"
        )

    def of_epoch(self, epoch: int) -> Order:
        """As :meth:`Order.of_epoch`."""
        found = super().of_epoch(epoch)
        assert isinstance(found, MixtureOrder)
        found.mixture = self.mixture
        return found

    def state(self, done: int | None = None) -> dict[str, Any]:
        """As :meth:`Order.state`, with what the mixture is of."""
        return {**super().state(done), MIXTURE: self.mixture}


class _Shift:
    """The places of an epoch, in the endless sequence."""

    def __init__(self, first: int) -> None:
        self._first = first

    def __call__(self, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return places + self._first


def expect_mixture(states: Sequence[Any], mixture: Mapping[str, Any]) -> None:
    """Refuse states of another mixture."""
    for state in states:
        if not isinstance(state, Mapping):
            continue  # `Order.from_states` says what it is
        found = state.get(MIXTURE)
        if not isinstance(found, Mapping) or not isinstance(found.get("members"), list):
            raise UsageError(
                "the state does not belong to a mixture",
                hint="pass what `order.state()` of a mixture returned",
            )
        there, here = found["members"], mixture["members"]
        _expect_same("the number of members", len(there), len(here))
        for number, (old, new) in enumerate(zip(there, here, strict=True), 1):
            old = old if isinstance(old, Mapping) else {}
            shown = safe(str(new["name"]), limit=200)
            if old.get("source") != new["source"]:
                _expect_same(f"member {number}", old.get("name"), new["name"])
            for key in ("records", "source", "count"):
                _expect_same(f"{_MEMBER[key]} of `{shown}`", old.get(key), new[key])
        _expect_same("the seed", found.get("seed"), mixture["seed"])


def _expect_same(what: str, there: object, here: object) -> None:
    if there != here:
        raise UsageError(
            f"the state belongs to another mixture: {what} was "
            f"`{safe(str(there), limit=200)}`, and is `{safe(str(here), limit=200)}`",
            hint="resume with the same members, versions, proportions and seed",
        )

"""For PyTorch: a sampler whose state can be saved, and a function that collates all elements.

Example:
    >>> from tfrecreg.torch import Collate, OrderSampler
    >>> train = reg["mnist@1.0.0"].data_source("train", decode=True)
    >>> sampler = OrderSampler(train, seed=1)
    >>> len(sampler), sampler.state_dict()["done"]
    (200, 0)

A `StatefulDataLoader` of torchdata saves and restores the sampler by itself. The sampler does not
need PyTorch. :class:`Collate` needs the extra `torch`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from tfrecreg.builtin.training.batches import ReadsBatches, expect_free_names
from tfrecreg.builtin.training.certificate import KEY_FEATURE
from tfrecreg.builtin.training.order import expect_same_order
from tfrecreg.core.example.model import Kind
from tfrecreg.core.values.errors import MissingExtraError, RefusedError, UsageError

__all__ = ["Collate", "OrderSampler"]

_DECIDING = ("seed", "drop_remainder", "weights", "block")
"""The arguments that determine the order of all epochs. States use the same names."""


class OrderSampler:
    """A sampler that gives one rank its share of each epoch. Its state can be saved.

    When an iteration reaches its end, the next epoch begins. The state is the order's state, a
    small JSON object. A job with another number of ranks may load it, if all ranks had consumed the
    same number of records. A plain `DataLoader` with workers takes the record numbers of later
    batches in advance. So count the records of the returned batches, and save `state_dict(done)`.

    Args:
        source: a data source or a mixture.
        epoch: the first epoch.
        host: the rank, from 0.
        hosts: the number of ranks.
        drop_remainder: whether all ranks get the same number of records.
        order: further arguments of `source.order`: `seed`, `weights`, `block` and others.

    Raises:
        UsageError: `source.order` refuses the arguments.

    Example:
        >>> train = reg["mnist@1.0.0"].data_source("train")
        >>> sampler = OrderSampler(train, seed=1, host=0, hosts=2)
        >>> numbers = iter(sampler)
        >>> first = [next(numbers) for _ in range(30)]
        >>> state = sampler.state_dict()
        >>> other = OrderSampler(train, seed=1, host=0, hosts=4)
        >>> other.load_state_dict(state)
        >>> len(list(other)), other.epoch
        (35, 1)
    """

    def __init__(
        self,
        source: ReadsBatches,
        epoch: int = 0,
        *,
        host: int = 0,
        hosts: int = 1,
        drop_remainder: bool = False,
        **order: Any,
    ) -> None:
        self._source = source
        self._place = {"host": host, "hosts": hosts}
        self._options = {"drop_remainder": drop_remainder, **order}
        self._order = source.order(epoch=epoch, **self._place, **self._options)
        self._done = 0

    @property
    def epoch(self) -> int:
        """The epoch of the next record number that the sampler yields."""
        return self._order.epoch

    def set_epoch(self, epoch: int) -> None:
        """Begin an epoch at its first record, like `DistributedSampler.set_epoch`."""
        self._order, self._done = self._order.of_epoch(epoch), 0

    def __len__(self) -> int:
        """Return how many record numbers the next iteration yields in this epoch."""
        return len(self._order)

    def __iter__(self) -> Iterator[int]:
        self._done = 0
        # With a cache, the next records for workers are fetched here, where the order is known.
        for number in self._source.reading_ahead(self._order):
            self._done += 1
            yield number
        self.set_epoch(self.epoch + 1)

    def state_dict(self, done: int | None = None) -> dict[str, Any]:
        """Return the state after `done` records of the iteration.

        Args:
            done: how many records of this iteration were consumed; None for all numbers taken so
                far. A plain `DataLoader` with workers takes more numbers than were consumed.

        Raises:
            UsageError: the iteration has fewer than `done` numbers.
        """
        return self._order.state(self._done if done is None else done)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state.

        Raises:
            UsageError: the state belongs to other records or to another order, or is not a state.
        """
        weights = self._options.get("weights")
        again = {} if weights is None or isinstance(weights, str) else {"weights": weights}
        order = self._source.from_state(state, **self._place, **again)
        here = self._order.state(0)
        expect_same_order(order.state(0), {name: here.get(name) for name in _DECIDING})
        self._order, self._done = order, 0
        left = order.left // order.hosts if order.drop_remainder else order.left
        if not left:
            self.set_epoch(self.epoch + 1)


class Collate:
    """A `collate_fn` that makes a batch of tensors from elements. It is picklable.

    The form of a batch depends only on the schema, not on the records:

    - A feature of fixed shape becomes one tensor, whose first dimension is the batch.
    - A feature of varying length becomes one tensor. The values of each record are padded with
      zeros to the length of the longest record in the batch, or to `pad_to`. ``NAME/mask`` is false
      at the padding. Lists of steps are padded as well, and their mask has the shape (batch,
      steps). A list whose steps differ in length becomes a list of lists of tensors.
    - A feature of images becomes one tensor of shape (batch, height, width, channels). With
      `pad_images`, the images are padded at the right and at the bottom, and ``NAME/mask`` has the
      shape (batch, height, width). If a record may have several images in a feature, the feature
      becomes a list of lists of tensors.
    - A feature of bytes becomes a list of `bytes`, or of `str` if `text` names the feature. If a
      record may have several values, the feature becomes a list that holds one list per record.
    - The keys are in the list ``record/key``. Digests are a tensor.

    Args:
        source: the source of the elements, which must have a schema.
        pad_images: whether images may differ in size.
        pad_to: a length for each of these features. Longer values are an error.
        text: features of bytes that hold text in UTF-8.

    Raises:
        UsageError: there is no schema, elements are payloads, a feature of `pad_to` does not have
            numbers of varying length, or a feature of `text` does not have bytes.
        MissingExtraError: PyTorch is not installed.

    Example:
        >>> train = reg["mnist@1.0.0"].data_source("train", decode=True)
        >>> batch = Collate(train)(train.__getitems__([3, 5, 8]))
        >>> batch["image/encoded"].shape, batch["image/class/label"].dtype
        (torch.Size([3, 28, 28, 1]), torch.int64)
        >>> batch["image/format"]
        [b'png', b'png', b'png']
    """

    def __init__(
        self,
        source: ReadsBatches,
        *,
        pad_images: bool = False,
        pad_to: Mapping[str, int] | None = None,
        text: Collection[str] = (),
    ) -> None:
        elements = source.elements
        if elements.columns is None:
            raise UsageError("`Collate` needs elements of a source with a schema, not payloads")
        _torch()
        self._with_key = elements.with_key
        self._pad_images, self._pad_to = pad_images, dict(pad_to or {})
        self._text = {text} if isinstance(text, str) else set(text)
        self._images = set(elements.images)
        self._bytes = {each.name for each in elements.columns if each.kind == Kind.BYTES}
        self._bytes -= self._images
        self._lists = {each.name for each in elements.columns if each.is_list}
        self._ragged = {each.name for each in elements.columns if each.is_ragged}
        single = {each.name for each in elements.columns if each.is_single}
        self._several = self._images - single - self._ragged
        self._varying = {each.name for each in elements.columns if not each.is_fixed}
        self._varying -= self._images | self._ragged
        for name in [*self._pad_to, *self._text]:
            known, what = (
                (self._bytes, "bytes")
                if name in self._text
                else (self._varying - self._bytes, "numbers of varying length")
            )
            if name not in known:
                raise UsageError(f"`{name}` is not a feature of {what}")
        expect_free_names(elements)
        masked = self._varying - self._bytes | (self._images if pad_images else set())
        for name in sorted(each.name for each in elements.columns):
            if name.removesuffix("/mask") in masked - {name}:
                raise UsageError(
                    f"the name `{name}` is taken by a feature, but the mask of "
                    f"`{name.removesuffix('/mask')}` needs it"
                )

    def __call__(self, elements: Sequence[Any]) -> dict[str, Any]:
        """Return the batch of one or more elements.

        Raises:
            RefusedError: images differ in size, a feature is longer than `pad_to`, or a text is not
                UTF-8.
        """
        batch: dict[str, Any] = {}
        if self._with_key:
            batch[KEY_FEATURE] = [key for key, _ in elements]
            elements = [element for _, element in elements]
        torch = _torch()
        for name in elements[0]:
            values = [element[name] for element in elements]
            if name in self._several:
                batch[name] = [[torch.from_numpy(each) for each in some.flat] for some in values]
            elif name in self._ragged and name not in self._bytes:
                batch[name] = [[torch.from_numpy(step) for step in steps] for steps in values]
            elif name in self._bytes:
                batch[name] = [self._plain(name, each) for each in values]
            elif name in self._images and not self._pad_images:
                batch[name] = torch.from_numpy(np.stack(_of_one_size(name, values)))
            elif name in self._images or name in self._varying:
                sides = 2 if name in self._images else 1 if name in self._lists else None
                padded, mask = self._padded(name, values, sides)
                batch[name] = torch.from_numpy(padded)
                batch[f"{name}/mask"] = torch.from_numpy(mask)
            else:
                batch[name] = torch.from_numpy(np.stack(values))
        return batch

    def _plain(self, name: str, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return [self._plain(name, each) for each in value.tolist()]
        if name in self._ragged and isinstance(value, list):
            return [self._plain(name, each) for each in value]
        if name not in self._text or isinstance(value, list):
            return value
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError as error:
            raise RefusedError(
                f"a value of `{name}` is not UTF-8: {error.reason} at byte {error.start}"
            ) from None

    def _padded(self, name: str, values: list[Any], sides: int | None) -> tuple[Any, Any]:
        """Return a padded array and its mask. The mask's shape is the batch size followed by the
        first `sides` dimensions of a value, or by all dimensions if `sides` is None.
        """
        if name in self._images:
            _expect_one_depth(name, values)
        shape = np.max([value.shape for value in values], axis=0)
        if name in self._pad_to:
            if shape[0] > self._pad_to[name]:
                raise RefusedError(
                    f"`{name}` has {shape[0]} values, and `pad_to` allows {self._pad_to[name]}"
                )
            shape[0] = self._pad_to[name]
        padded = np.zeros((len(values), *shape), values[0].dtype)
        mask = np.zeros((len(values), *shape[:sides]), np.bool_)
        for at, value in enumerate(values):
            inside: tuple[Any, ...] = (at, *(slice(side) for side in value.shape))
            padded[inside] = value
            mask[inside[: None if sides is None else sides + 1]] = True
        return padded, mask


def _expect_one_depth(name: str, images: list[Any]) -> None:
    depths = sorted({each.shape[-1] for each in images})
    if len(depths) > 1:
        raise RefusedError(
            f"images of `{name}` have {depths[0]} and {depths[-1]} channels in one batch: "
            "`data_source(…, channels=3)` gives every image 3 channels"
        )


def _of_one_size(name: str, images: list[Any]) -> list[Any]:
    _expect_one_depth(name, images)
    sizes = sorted({each.shape for each in images})
    if len(sizes) > 1:
        raise RefusedError(
            f"images of `{name}` differ in size: {sizes[0]} and {sizes[-1]} in one batch; "
            "`Collate(source, pad_images=True)` pads them"
        )
    return images


def _torch() -> Any:
    try:
        return import_module("torch")
    except ModuleNotFoundError:
        raise MissingExtraError("collation for PyTorch", "torch") from None

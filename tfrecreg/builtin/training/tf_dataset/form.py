"""Finds the form of a dataset's elements from the schema and the arguments."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from tfrecreg.builtin.training.arrays import (
    ArrayColumn,
    ImageSize,
    columns_of,
    expect_features,
)
from tfrecreg.builtin.training.splits import SplitRecords
from tfrecreg.core.example.decode import decode_or_none
from tfrecreg.core.example.model import Kind
from tfrecreg.core.images.decoder import FeatureDecoder
from tfrecreg.core.plugins.decoders import Decoders
from tfrecreg.core.schema.definition import IntDomain, Schema
from tfrecreg.core.values.errors import RefusedError, UsageError
from tfrecreg.core.values.text import listed, safe

PAYLOAD_NAME = ""
"""Name of the only feature of records that are not Examples."""

_LABELS = ("image/class/label", "class/label", "label")


@dataclass(frozen=True, kw_only=True)
class FormRequest:
    """The arguments of :func:`tfrecreg.load` that concern single elements."""

    features: Sequence[str] | None = None
    decode: bool = False
    fit: ImageSize = field(default_factory=ImageSize)
    tensors: Mapping[str, Any] = field(default_factory=dict)
    ragged: bool = False
    pad_to: int | Mapping[str, int] | Literal["longest"] | None = None
    as_supervised: bool | tuple[str, str] = False
    with_key: bool = False
    with_digest: bool = False


@dataclass(frozen=True, kw_only=True)
class PipelineOptions:
    """The arguments of :func:`tfrecreg.load` that concern the order and grouping of elements."""

    batch_size: int | None
    drop_remainder: bool
    shuffle: bool | int
    seed: int | None
    repeat: bool | int
    cache: bool | str
    """With ``"auto"``, the shape and size of elements decide. Any other text is the prefix of the
    cache files' paths."""
    prefetch: int | None
    deterministic: bool

    def expect_sense(self, *, longest: bool) -> None:
        """Refuse numbers that are too small, and an argument whose required partner is missing."""
        for name, value in (
            ("batch_size", self.batch_size),
            ("shuffle", None if self.shuffle is False else self.shuffle),
            ("repeat", None if self.repeat is False else self.repeat),
        ):
            if value is not None and value < 1:
                raise UsageError(f"`{name}` should be 1 or more, found {value}")
        if self.prefetch is not None and self.prefetch < 0:
            raise UsageError(f"`prefetch` should be 0 or more, found {self.prefetch}")
        for name, given, needed, there in (
            ("drop_remainder", self.drop_remainder, "batch_size", self.batch_size is not None),
            ('pad_to="longest"', longest, "batch_size", self.batch_size is not None),
            ("seed", self.seed is not None, "shuffle", self.shuffle is not False),
        ):
            if given and not there:
                raise UsageError(f"`{name}` needs `{needed}`")

    @property
    def grouping(self) -> tuple[object, ...]:
        """These arguments decide which elements a cache keeps, and in which order."""
        return self.batch_size, self.drop_remainder, bool(self.shuffle), self.deterministic


@dataclass(frozen=True, kw_only=True)
class ElementForm:
    """The form of an Example's features."""

    request: FormRequest = field(default_factory=FormRequest)
    columns: tuple[ArrayColumn, ...] | None = None
    """The features to parse; None for unparsed payloads."""
    images: Mapping[str, tuple[int | None, int | None, int | None]] = field(default_factory=dict)
    """Features to decode, with the height, width and channels of each. An unknown number is
    None."""
    tensors: Mapping[str, Any] = field(default_factory=dict)
    """Features that hold serialized tensors, and their `tf.TensorSpec` or data type."""
    others: Mapping[str, tuple[FeatureDecoder, Any]] = field(default_factory=dict)
    """Features that a plugin decodes, with the decoder and the `tf.TensorSpec` of a value."""
    ragged: frozenset[str] = frozenset()
    """Features of varying length that are parsed as ragged tensors."""
    padded: Mapping[str, int] = field(default_factory=dict)
    """The ragged features that are padded, and the length that each gets."""
    supervised: tuple[str, str] | None = None
    """The features that are the input and the label of each pair."""

    @property
    def stacks(self) -> bool:
        """Whether the form guarantees that the elements of any batch have one shape."""
        whole = all(None not in (height, width) for height, width, _ in self.images.values())
        whole = whole and not self.others
        return whole and all(getattr(each, "shape", None) for each in self.tensors.values())

    def kept_bytes(self, payload: float) -> float:
        """Upper bound for the bytes of an element with its images decoded."""
        if not self.images or self.others or self.tensors:
            return math.inf
        if any(None in shape for shape in self.images.values()):
            return math.inf
        pixels = sum(math.prod(filter(None, shape)) for shape in self.images.values())
        rest = [each for each in self.columns or () if each.name not in self.images]
        is_small = all(each.is_fixed and each.kind != Kind.BYTES for each in rest)
        return pixels + (8 * sum(math.prod(each.shape) for each in rest) if is_small else payload)


def find_form(schema: Schema, request: FormRequest) -> ElementForm:
    """The form of the elements."""
    columns = {each.name: each for each in columns_of(schema)}
    supervised = _supervised(schema, columns, request)
    chosen = list(columns)
    if supervised is not None:
        chosen = list(dict.fromkeys(supervised))
    elif request.features is not None:
        expect_features(request.features, columns)
        chosen = [name for name in columns if name in request.features]
    if not chosen and not request.with_key and not request.with_digest:
        raise UsageError(
            "no feature is left to parse",
            hint=f"available: {listed(columns)}"
            if columns
            else "no feature of the schema has a type",
        )
    varying = [name for name in chosen if not columns[name].is_fixed]
    padded = _padded(request, columns, varying)
    for name in padded:
        if columns[name].is_ragged:
            raise UsageError(
                f'the steps of `{name}` differ in length, so only `pad_to="longest"` can pad it'
            )
    images = _image_sizes(schema, columns, request, chosen)
    expect_features(request.tensors, columns)
    for name in request.tensors:
        if not columns[name].is_single or columns[name].kind != Kind.BYTES:
            raise UsageError(
                f"`{name}` is not one string per record, so it holds no serialized tensor"
            )
    is_ragged = request.ragged or request.pad_to == "longest" or schema.ragged
    lists = {name for name in varying if columns[name].is_list}
    return ElementForm(
        request=request,
        columns=tuple(columns[name] for name in chosen),
        images=images,
        tensors={name: each for name, each in request.tensors.items() if name in chosen},
        ragged=frozenset(varying if is_ragged else {*padded, *lists}),
        padded=padded,
        supervised=supervised,
    )


def _supervised(
    schema: Schema, names: Collection[str], request: FormRequest
) -> tuple[str, str] | None:
    if request.as_supervised is False:
        return None
    if request.features is not None or request.with_key or request.with_digest:
        raise UsageError(
            "`as_supervised` makes pairs of input and label, which cannot hold anything else"
        )
    if request.as_supervised is not True:
        pair: Any = request.as_supervised
        if isinstance(pair, str) or len(pair) != 2:
            raise UsageError(
                "`as_supervised` should be a pair of features, found "
                f"`{safe(repr(pair), limit=200)}`"
            )
        expect_features(pair, names)
        feature, label = pair
        return feature, label
    labels = [each for each in schema.labels() if each in names]
    labels = labels or [each for each in _LABELS if each in names][:1]
    pictures = (*schema.images(), *schema.pixels())
    images = [each for each in dict.fromkeys(pictures) if each in names]
    for found, what in ((images, "image"), (labels, "label")):
        if len(found) != 1:
            raise UsageError(
                f"expected one feature of the schema to be the {what} of a record, found "
                f"{len(found) or 'none'}"
            )
    return images[0], labels[0]


def _padded(request: FormRequest, names: Collection[str], varying: Sequence[str]) -> dict[str, int]:
    if isinstance(request.pad_to, Mapping):
        expect_features(request.pad_to, names)
        lengths = {name: size for name, size in request.pad_to.items() if name in varying}
    elif request.pad_to in (None, "longest"):
        lengths = {}
    else:
        lengths = dict.fromkeys(varying, request.pad_to)  # type: ignore[arg-type]
    if any(type(each) is not int or each < 1 for each in lengths.values()):
        raise UsageError(
            "`pad_to` should be a length, a length for each feature, or `longest`; found "
            f"`{request.pad_to}`"
        )
    return lengths


def _image_sizes(
    schema: Schema,
    columns: Mapping[str, ArrayColumn],
    request: FormRequest,
    chosen: Collection[str],
) -> dict[str, tuple[int | None, int | None, int | None]]:
    if not isinstance(request.decode, bool):
        raise UsageError(f"`decode` should be True or False, found `{request.decode!r}`")
    request.fit.expect_sense(decodes=request.decode)
    if not request.decode:
        return {}
    pixels = schema.byte_pixels()
    if not schema.images() and not schema.pixels():
        raise UsageError("no feature of the schema has an `image_domain {}`, which marks images")
    sizes = {name: _image_shape(schema, name, request) for name in schema.images()} | pixels
    return {
        name: size for name, size in sizes.items() if name in chosen and columns[name].is_single
    }


def _image_shape(
    schema: Schema, name: str, request: FormRequest
) -> tuple[int | None, int | None, int | None]:
    prefix = name.rpartition("/")[0]
    declared = _only_value(schema, f"{prefix}/channels")
    # TensorFlow decodes images with other numbers of channels to one of these.
    known = declared if declared in (1, 3) else None
    tagged = (each.channels for each in schema.features if each.name == name)
    channels = request.fit.channels or known or next(tagged, None)
    if request.fit.size is not None:
        return *request.fit.sides, channels
    return (
        _only_value(schema, f"{prefix}/height"),
        _only_value(schema, f"{prefix}/width"),
        channels,
    )


def _only_value(schema: Schema, name: str) -> int | None:
    """The value of an integer feature that allows only one value."""
    for feature in schema.features:
        domain = feature.domain
        if feature.name == name and feature.is_required and isinstance(domain, IntDomain):
            return domain.min if domain.min == domain.max else None
    return None


def with_others(
    tensorflow: Any, records: SplitRecords, form: ElementForm, decoders: Decoders
) -> ElementForm:
    """Let plugins decode a feature if TensorFlow does not know its format. Also add features that
    the schema declares as pixels.

    The formats are those of the first record, which is read only if third-party decoders are
    installed.
    """
    payload = records.first_payload() if form.images and decoders.third_party() else None
    example = None if payload is None else decode_or_none(payload)
    others: dict[str, tuple[FeatureDecoder, Any]] = {}
    for name, pixels in decoders.pixels.items():
        if name in form.images:
            _expect_plain(form, name, "holds pixels, whose size the schema states")
            others[name] = pixels, tensorflow.TensorSpec(pixels.size, tensorflow.uint8)
    for name in form.images:
        if name in others:
            continue
        feature = None if example is None else example.get(name)
        data = feature.values[0] if feature is not None and feature.count else b""
        if not isinstance(data, bytes) or decoders.find_bundled(name, data) is not None:
            continue
        decoder = decoders.find_third_party(name, data)
        if decoder is None:
            continue
        _expect_plain(form, name, "is decoded by a plugin")
        try:
            array = decoder.array(data)
        except ValueError as error:
            raise RefusedError(
                f"`{name}` of {records.named(0)} does not decode: {error}"
            ) from error
        others[name] = decoder, tensorflow.TensorSpec([None] * array.ndim, array.dtype)
    images = {name: sides for name, sides in form.images.items() if name not in others}
    return replace(form, images=images, others=others)


def _expect_plain(form: ElementForm, name: str, how: str) -> None:
    if form.request.fit != ImageSize():
        raise UsageError(f"`{name}` {how}, so `channels` and `image_size` do not apply to it")

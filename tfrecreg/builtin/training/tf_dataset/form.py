"""Finds the form of a dataset's elements from the schema and the arguments.

If all steps of a list have one shape, it is ragged only along its steps. If the steps differ in
length, the list is also ragged along a second dimension. The context is parsed as an Example,
because TensorFlow 2.16's `tf.io.parse_sequence_example` refuses a context of fixed shape for a
batch without records.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from tfrecreg.builtin.training.arrays import expect_features
from tfrecreg.builtin.training.tf_dataset.images import ImageFit
from tfrecreg.core.example.decode import decode_or_none
from tfrecreg.core.example.sequences import compile_sequences
from tfrecreg.core.images.decoder import FeatureDecoder
from tfrecreg.core.plugins.decoders import Decoders
from tfrecreg.core.registry.splits import SplitRecords
from tfrecreg.core.schema.compiled import TensorSpec, tensor_specs
from tfrecreg.core.schema.definition import SEQUENCE, IntDomain, Schema
from tfrecreg.core.values.errors import RefusedError, UsageError
from tfrecreg.core.values.text import listed, safe

_DTYPES: dict[str, Literal["string", "int64", "float32"]] = {
    "BYTES": "string",
    "INT": "int64",
    "FLOAT": "float32",
}


@dataclass(frozen=True, slots=True)
class ListSpec(TensorSpec):
    """How to parse a list into ragged form."""

    is_fixed: bool = False
    """Whether every step has exactly this shape."""
    is_required: bool = False
    """Whether a record without the list is an error. Only lists with a shape use it."""


def all_specs(schema: Schema) -> tuple[TensorSpec, ...]:
    """The specifications of features, and of lists if the schema describes SequenceExamples."""
    if not schema.describes_sequences():
        return tensor_specs(schema)
    others = tuple(each for each in schema.features if each.name != SEQUENCE)
    found: list[TensorSpec] = list(tensor_specs(replace(schema, features=others)))
    for rule in compile_sequences(schema).lists:
        dtype = _DTYPES.get(rule.feature.kind or "")
        if dtype is not None:
            shape = rule.step_shape
            is_fixed = shape is not None
            found.append(
                ListSpec(rule.name, "ragged", dtype, shape or (), is_fixed, rule.is_required)
            )
    return tuple(sorted(found, key=lambda each: each.name))


class ListParser:
    """Parses the lists of a batch of payloads."""

    def __init__(self, tensorflow: Any, lists: Sequence[ListSpec]) -> None:
        self._tf = tensorflow
        self._lists = lists
        self._spec = {each.name: self._feature(each) for each in lists}

    def __call__(self, payloads: Any) -> dict[str, Any]:
        """The lists by name."""
        _, lists, lengths = self._tf.io.parse_sequence_example(
            payloads, sequence_features=self._spec
        )
        for each in self._lists:
            if each.is_fixed:
                lists[each.name] = self._tf.RaggedTensor.from_tensor(
                    lists[each.name], lengths[each.name], row_splits_dtype=self._tf.int64
                )
        found: dict[str, Any] = lists
        return found

    def _feature(self, spec: ListSpec) -> Any:
        dtype = getattr(self._tf, spec.dtype)
        if not spec.is_fixed:
            return self._tf.io.RaggedFeature(dtype, row_splits_dtype=self._tf.int64)
        return self._tf.io.FixedLenSequenceFeature(
            list(spec.shape), dtype, allow_missing=not spec.is_required
        )


PAYLOAD_NAME = ""
"""Name of the only feature of records that are not Examples."""

_LABELS = ("image/class/label", "class/label", "label")


@dataclass(frozen=True, kw_only=True)
class FormRequest:
    """The arguments of :func:`tfrecreg.load` that concern single elements."""

    features: Sequence[str] | None = None
    decode: bool = False
    fit: ImageFit = field(default_factory=ImageFit)
    tensors: Mapping[str, Any] = field(default_factory=dict)
    ragged: bool = False
    pad_to: int | Mapping[str, int] | Literal["longest"] | None = None
    as_supervised: bool | tuple[str, str] = False
    with_key: bool = False
    with_digest: bool = False


@dataclass(frozen=True, kw_only=True)
class ElementForm:
    """The form of an Example's features."""

    specs: tuple[TensorSpec, ...] | None = None
    """The features to parse; None for unparsed payloads."""
    images: Mapping[str, tuple[int | None, int | None, int | None]] = field(default_factory=dict)
    """Features to decode, with the height, width and channels of each. An unknown number is
    None."""
    fit: ImageFit = field(default_factory=ImageFit)
    """The size and the channels that decoded images get."""
    tensors: Mapping[str, Any] = field(default_factory=dict)
    """Features that hold serialized tensors, and their `tf.TensorSpec` or data type."""
    others: Mapping[str, tuple[FeatureDecoder, Any]] = field(default_factory=dict)
    """Features that a plugin decodes, with the decoder and the `tf.TensorSpec` of a value."""
    ragged: frozenset[str] = frozenset()
    """Features of varying length that are parsed as ragged tensors."""
    padded: Mapping[str, int] = field(default_factory=dict)
    """The ragged features that are padded, and the length that each gets."""
    longest: bool = False
    """Whether each batch is padded to its longest element."""
    supervised: tuple[str, str] | None = None
    """The features that are the input and the label of each pair."""
    with_key: bool = False
    with_digest: bool = False

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
        rest = [each for each in self.specs or () if each.name not in self.images]
        is_small = all(each.form == "fixed" and each.dtype != "string" for each in rest)
        return pixels + (8 * sum(math.prod(each.shape) for each in rest) if is_small else payload)


def find_form(schema: Schema, request: FormRequest) -> ElementForm:
    """The form of the elements."""
    specs = {each.name: each for each in all_specs(schema)}
    supervised = _supervised(schema, specs, request)
    chosen = list(specs)
    if supervised is not None:
        chosen = list(dict.fromkeys(supervised))
    elif request.features is not None:
        expect_features(request.features, specs)
        chosen = [name for name in specs if name in request.features]
    if not chosen and not request.with_key and not request.with_digest:
        raise UsageError(
            "no feature is left to parse",
            hint=f"available: {listed(specs)}" if specs else "no feature of the schema has a type",
        )
    varying = [name for name in chosen if specs[name].form != "fixed"]
    padded = _padded(request, specs, varying)
    for name in padded:
        spec = specs[name]
        if isinstance(spec, ListSpec) and not spec.is_fixed:
            raise UsageError(
                f'the steps of `{name}` differ in length, so only `pad_to="longest"` can pad it'
            )
    images = _image_sizes(schema, specs, request, chosen)
    expect_features(request.tensors, specs)
    for name in request.tensors:
        if not _is_single(specs[name]) or specs[name].dtype != "string":
            raise UsageError(
                f"`{name}` is not one string per record, so it holds no serialized tensor"
            )
    is_ragged = request.ragged or request.pad_to == "longest"
    by_schema = {name for name in varying if specs[name].form == "ragged"}
    return ElementForm(
        specs=tuple(specs[name] for name in chosen),
        images=images,
        fit=request.fit,
        tensors={name: each for name, each in request.tensors.items() if name in chosen},
        ragged=frozenset(varying if is_ragged else {*padded, *by_schema}),
        padded=padded,
        longest=request.pad_to == "longest",
        supervised=supervised,
        with_key=request.with_key,
        with_digest=request.with_digest,
    )


def _supervised(
    schema: Schema, specs: Collection[str], request: FormRequest
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
        expect_features(pair, specs)
        feature, label = pair
        return feature, label
    labels = [each for each in schema.labels() if each in specs]
    labels = labels or [each for each in _LABELS if each in specs][:1]
    pictures = (*schema.images(), *schema.pixels())
    images = [each for each in dict.fromkeys(pictures) if each in specs]
    for found, what in ((images, "image"), (labels, "label")):
        if len(found) != 1:
            raise UsageError(
                f"expected one feature of the schema to be the {what} of a record, found "
                f"{len(found) or 'none'}"
            )
    return images[0], labels[0]


def _padded(
    request: FormRequest, specs: Mapping[str, TensorSpec], varying: Sequence[str]
) -> dict[str, int]:
    if isinstance(request.pad_to, Mapping):
        expect_features(request.pad_to, specs)
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
    schema: Schema, specs: Mapping[str, TensorSpec], request: FormRequest, chosen: Collection[str]
) -> dict[str, tuple[int | None, int | None, int | None]]:
    request.fit.expect_sense(decodes=request.decode)
    if not request.decode:
        return {}
    pixels = schema.byte_pixels()
    if not schema.images() and not schema.pixels():
        raise UsageError("no `image_domain {}` in the schema says that a feature holds images")
    sizes = {name: _image_shape(schema, name, request) for name in schema.images()} | pixels
    return {
        name: size for name, size in sizes.items() if name in chosen and _is_single(specs[name])
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


def _is_single(spec: TensorSpec) -> bool:
    return spec.form == "fixed" and math.prod(spec.shape) == 1


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
    if form.fit != ImageFit():
        raise UsageError(f"`{name}` {how}, so `channels` and `image_size` do not apply to it")

"""The schemas of several parents as one, for records whose features and classes are changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

from tfrecreg.builtin.derived.classes import Classes
from tfrecreg.builtin.derived.parents import Ancestor
from tfrecreg.core.schema.proto import parse_schema, schema_message
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import safe

_WIDENED = ("presence", "int_domain", "float_domain", "string_domain", "value_count")
"""Fields of a feature that are widened where parents differ."""


def merge_schemas(parents: Sequence[Ancestor], classes: Classes, chosen: Mapping[str, str]) -> str:
    """The text of the schema; that of the parents, word for word, if they have one and nothing is
    changed.
    """
    texts = {each.schema for each in parents}
    changed = any(not each.same for changes in classes.by_parent for each in changes)
    as_is = all(old == new for old, new in chosen.items())
    messages = [schema_message(parse_schema(each.schema, each.name)) for each in parents]
    declared = {feature.name for message in messages for feature in message.feature}
    if len(texts) == 1 and not changed and as_is and declared <= chosen.keys():
        return parents[0].schema
    merged = messages[0]
    by_name = {feature.name: feature for feature in merged.feature}
    first = dict.fromkeys(by_name, parents[0])
    for count, (parent, message) in enumerate(zip(parents[1:], messages[1:], strict=True), start=1):
        here = {feature.name: feature for feature in message.feature}
        for name, feature in here.items():
            if name not in chosen:
                continue
            if name in by_name:
                _widen(by_name[name], feature, (first[name], parent))
            else:
                by_name[name] = merged.feature.add()
                by_name[name].CopyFrom(feature)
                by_name[name].ClearField("presence")
                first[name] = parent
        for name in by_name.keys() - here.keys():
            by_name[name].ClearField("presence")
        _add_domains(merged, message, (parents[:count], parent))
    _renumber(by_name.values(), classes)
    _rename(merged, chosen)
    merged.ClearField("dataset_constraints")  # of the records of the parents
    text_format = import_module("google.protobuf.text_format")
    return str(text_format.MessageToString(merged, as_utf8=True))


def _widen(feature: Any, other: Any, parents: tuple[Ancestor, Ancestor]) -> None:
    """Have a declaration accept what another one accepts."""
    fixed = feature.HasField("shape") and other.HasField("shape")
    rest = [type(each)() for each in (feature, other)]
    for copy, each in zip(rest, (feature, other), strict=True):
        copy.CopyFrom(each)
        for name in (*_WIDENED, *(() if fixed else ("shape",))):
            copy.ClearField(name)
    if rest[0] != rest[1]:
        raise UsageError(
            f"the schemas of the parents `{parents[0].name}` and `{parents[1].name}` declare "
            f"`{safe(feature.name)}` in different ways: {_difference(*rest)}",
            hint="leave the feature out with `--option features=NAME=`, or make the schemas agree",
        )
    if not fixed:  # one has any number of values, or a range of numbers
        feature.ClearField("shape")
    if feature.HasField("presence") and other.HasField("presence"):
        for name in ("min_fraction", "min_count"):
            _widen_bound(feature.presence, other.presence, name, min)
    else:
        feature.ClearField("presence")
    for name in _WIDENED[1:]:
        if not (feature.HasField(name) and other.HasField(name)):
            feature.ClearField(name)
            continue
        mine, others = getattr(feature, name), getattr(other, name)
        if name == "string_domain":
            mine.value.extend(each for each in others.value if each not in mine.value)
            continue
        _widen_bound(mine, others, "min", min)
        _widen_bound(mine, others, "max", max)
        for flag in ("disallow_nan", "disallow_inf"):
            if name == "float_domain" and not getattr(others, flag):
                mine.ClearField(flag)


def _widen_bound(mine: Any, others: Any, name: str, wider: Any) -> None:
    if mine.HasField(name) and others.HasField(name):
        setattr(mine, name, wider(getattr(mine, name), getattr(others, name)))
    else:
        mine.ClearField(name)


def _difference(one: Any, other: Any) -> str:
    """The first field that differs, with both values, on one line."""
    fields = {field.name: field for each in (one, other) for field, _ in each.ListFields()}
    for name, field in fields.items():
        shown = []
        for each in (one, other):
            value = getattr(each, name)
            if field.enum_type is not None:
                value = field.enum_type.values_by_number[value].name
            shown.append(" ".join(str(value).split()) or "none")
        if shown[0] != shown[1]:
            return f"{name} is {safe(shown[0], limit=60)} and {safe(shown[1], limit=60)}"
    return "the declarations differ"


def _add_domains(merged: Any, message: Any, parents: tuple[Sequence[Ancestor], Ancestor]) -> None:
    """Add what a schema declares besides features: named domains, sparse and weighted features."""
    groups = ("string_domain", "int_domain", "float_domain", "sparse_feature", "weighted_feature")
    for group in groups:
        known = {each.name: each for each in getattr(merged, group)}
        for each in getattr(message, group):
            if each.name not in known:
                getattr(merged, group).add().CopyFrom(each)
            elif known[each.name] != each:
                raise UsageError(
                    f"the schemas of the parents `{parents[0][0].name}` and `{parents[1].name}` "
                    f"declare the {group} `{safe(each.name)}` in different ways",
                    hint="make the schemas agree, or leave out one of the inputs",
                )


def _renumber(features: Iterable[Any], classes: Classes) -> None:
    """Have the domains of class numbers and names fit the merged label maps."""
    lengths = classes.lengths
    texts: dict[str, tuple[Mapping[bytes, bytes], set[str]]] = {}
    for changes in classes.by_parent:
        for change in changes:
            if change.text is not None:
                texts[change.text] = change.texts, set(classes.labels[change.feature])
    for feature in features:
        length = lengths.get(feature.name)
        if (
            length is not None
            and feature.HasField("int_domain")
            and feature.int_domain.HasField("max")
        ):
            feature.int_domain.max = max(length - 1, 0)
        if feature.name in texts and feature.HasField("string_domain"):
            renamed, known = texts[feature.name]
            before = [each.encode() for each in feature.string_domain.value]
            names = dict.fromkeys(renamed.get(each, each).decode() for each in before)
            del feature.string_domain.value[:]
            feature.string_domain.value.extend(each for each in names if each in known)


def _rename(message: Any, chosen: Mapping[str, str]) -> None:
    """Leave out the features that are not kept, and give the others their new names."""
    kept = [each for each in message.feature if each.name in chosen]
    copies = [type(each)() for each in kept]
    for copy, each in zip(copies, kept, strict=True):
        copy.CopyFrom(each)
        copy.name = chosen[each.name]
    del message.feature[:]
    message.feature.extend(copies)
    same = {old for old, new in chosen.items() if old == new}
    for group, parts in (("sparse_feature", _sparse_parts), ("weighted_feature", _weighted_parts)):
        whole = [each for each in getattr(message, group) if parts(each) <= same]
        if len(whole) < len(getattr(message, group)):
            left = [type(each)() for each in whole]
            for copy, each in zip(left, whole, strict=True):
                copy.CopyFrom(each)
            del getattr(message, group)[:]
            getattr(message, group).extend(left)


def _sparse_parts(feature: Any) -> set[str]:
    return {feature.value_feature.name, *(each.name for each in feature.index_feature)}


def _weighted_parts(feature: Any) -> set[str]:
    return {"/".join(each.step) for each in (feature.feature, feature.weight_feature)}

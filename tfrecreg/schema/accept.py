"""The smallest change of a schema that takes in data which break it.

What comes out is a proposal for people: a text to be shown as a diff. Not everything can be taken
in: of two types in one feature one is wrong, whatever a schema says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import floor, prod

from tfrecreg.example import Kind
from tfrecreg.schema.accept_values import ValueEdits
from tfrecreg.schema.draft import draft_feature
from tfrecreg.schema.locate import Path
from tfrecreg.schema.model import Feature, Schema
from tfrecreg.schema.needed import Need, Needs
from tfrecreg.schema.proto import schema_message
from tfrecreg.schema.text_edit import TextEdit
from tfrecreg.schema.wording import counted

__all__ = ["Edit", "Refusal", "SplitFacts", "edit_schema"]

_TYPES = {Kind.BYTES: "BYTES", Kind.FLOAT: "FLOAT", Kind.INT64: "INT"}


@dataclass(frozen=True, slots=True)
class SplitFacts:
    """What was counted in one split."""

    examples: int
    absent: Mapping[str, int]
    """Examples without a feature, by feature."""
    distinct: Mapping[str, int]
    """Different values, by feature; none for features that have too many to be counted."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One thing that the proposal changes."""

    code: str
    """Of the finding that it answers."""
    feature: str
    text: str
    """What is changed, as a phrase."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """One finding that no change of the schema answers."""

    code: str
    feature: str
    reason: str


class _RefusedError(Exception):
    """No change of the schema would do; its message says why."""


def edit_schema(
    schema: Schema,
    broken: Iterable[tuple[str, str]],
    needs: Needs,
    splits: Iterable[SplitFacts],
) -> tuple[str, list[Edit], list[Refusal]]:
    """Change a schema's text so that data which break it pass.

    Args:
        schema: the schema.
        broken: what was found: a code and a feature each, the feature empty where there is none.
        needs: what the records hold that is not allowed.
        splits: what was counted in each split that is held against the schema.

    Returns:
        the new text, what was changed in it, and what was not.
    """
    wanted = sorted(set(broken))
    editor = _Editor(schema, frozenset(wanted), needs, tuple(splits))
    edits: list[Edit] = []
    refused: list[Refusal] = []
    for code, name in wanted:
        try:
            texts = list(editor.answer(code, name))
        except _RefusedError as refusal:
            refused.append(Refusal(code, name, str(refusal)))
        else:
            edits += [Edit(code, name, text) for text in texts]
    return editor.text.result(), edits, refused


class _Editor:
    def __init__(
        self,
        schema: Schema,
        broken: frozenset[tuple[str, str]],
        needs: Needs,
        splits: tuple[SplitFacts, ...],
    ) -> None:
        self.text = TextEdit(schema.text)
        self._broken = broken
        self._schema = schema
        self._features = {feature.name: feature for feature in schema.features}
        self._paths = _paths(schema)
        self._needs = needs
        self._splits = splits
        self._retyped: set[str] = set()
        self._values = ValueEdits(self.text)
        self._answers: dict[str, Callable[[str], Iterator[str]]] = {
            "SCH002": self._presence,
            "SCH003": self._type,
            "SCH004": self._length,
            "SCH005": self._new,
            "SCH006": self._domain,
            "SCH007": self._finite,
            "SCH008": self._distinct,
            "SCH010": self._examples,
        }

    def answer(self, code: str, name: str) -> Iterator[str]:
        answer = self._answers.get(code)
        if code == "SCH001":
            raise _RefusedError("no schema describes records that are no examples")
        if code == "SCH009":
            raise _RefusedError("parts that do not fit together mean nothing: mend the data")
        if answer is None:
            raise _RefusedError("no change of the schema answers it")
        return answer(name)

    def _presence(self, name: str) -> Iterator[str]:
        feature = self._features.get(name)
        if feature is None or feature.presence is None:
            raise _RefusedError("a sparse feature is declared by hand")
        if feature.type == "STRUCT":
            raise _RefusedError("no example can hold a STRUCT: remove it, or its presence")
        path = self._path(name)
        place: Path = (*path, "presence", 0)
        present = [
            (each.examples - each.absent.get(name, 0), each.examples)
            for each in self._splits
            if each.examples
        ]
        fewest = min(there for there, _ in present)
        fraction = min(there / all_ for there, all_ in present)
        left = 0
        if feature.presence.min_fraction is not None:
            if feature.presence.min_fraction <= fraction:
                left += 1
            elif feature.presence.min_fraction < 1 and fraction >= 0.0001:
                lower = f"{floor(fraction * 10000) / 10000:.9g}"
                self.text.set(place, "min_fraction", lower)
                left += 1
                yield f"in at least {float(lower):.6g} of the examples of a split"
            else:
                self.text.remove((*place, "min_fraction", 0))
                yield "no longer in every example"
        if feature.presence.min_count is not None:
            if feature.presence.min_count <= fewest:
                left += 1
            elif fewest:
                self.text.set(place, "min_count", str(fewest))
                left += 1
                yield f"in at least {counted(fewest, 'example')} of a split"
            else:
                self.text.remove((*place, "min_count", 0))
                yield "not in every split"
        if not left:
            self.text.remove(place)
        shape: Path = (*path, "shape", 0)
        # Those put a value count there as well.
        counted_too = {("SCH003", name), ("SCH004", name)} & self._broken
        fixed = feature.shape is not None and None not in feature.shape
        if fixed and self.text.has(shape) and not counted_too:
            # To TFDV a shape says as well that the feature is in every example.
            values = prod(size or 0 for size in feature.shape or ())
            self.text.replace(shape, f"value_count {{ min: {values} max: {values} }}")
            yield f"{counted(values, 'value')} where it is there, instead of a shape"

    def _type(self, name: str) -> Iterator[str]:
        need = self._need(name)
        there = sum(each.examples - each.absent.get(name, 0) for each in self._splits)
        kind, count = max(need.kinds.items(), key=lambda item: item[1])
        if count != there:
            found = ", ".join(f"{_TYPES[k]} in {n}" for k, n in sorted(need.kinds.items()))
            raise _RefusedError(
                f"a feature has one type, and of {counted(there, 'example')} it is {found}"
            )
        path = self._path(name)
        self.text.set(path, "type", _TYPES[kind])
        self._retyped.add(name)
        yield f"of the type {_TYPES[kind]}"
        for domain in self._values.remove_domain(path):
            yield f"without its `{domain}`, which was for another type"
        yield from self._counts(name, need.retyped)

    def _length(self, name: str) -> Iterator[str]:
        return self._counts(name, self._need(name).counts)

    def _counts(self, name: str, counts: set[int]) -> Iterator[str]:
        """Allow these numbers of values, where they are not allowed already."""
        feature, path = self._features[name], self._path(name)
        least, most = min(counts), max(counts)
        if feature.shape is not None:
            fixed = None not in feature.shape
            known = prod(1 if size is None else size for size in feature.shape)
            if fixed and least == known == most:
                return
            low = min(known, least) if fixed else 0
            bounds = f"min: {low}" + (f" max: {max(known, most)}" if fixed else "")
            self.text.replace((*path, "shape", 0), f"value_count {{ {bounds} }}")
            many = f"from {low} to {max(known, most)}" if fixed else "any number of"
            yield f"{many} values instead of a shape"
            return
        place: Path = (*path, "value_count", 0)
        if not self.text.has(place):
            place = (*path, "value_counts", 0, "value_count", 0)
        count = feature.value_count
        if count is not None and count.min is not None and least < count.min:
            self.text.set(place, "min", str(least))
            yield f"at least {counted(least, 'value')}"
        if count is not None and count.max is not None and most > count.max:
            self.text.set(place, "max", str(most))
            yield f"at most {counted(most, 'value')}"

    def _new(self, name: str) -> Iterator[str]:
        if name in self._features:
            raise _RefusedError("it is declared for other environments: add this one by hand")
        seen = self._needs.new.get(name)
        if seen is None:
            raise _RefusedError("too many features are not in the schema: infer a new draft")
        if len(seen.kinds) > 1:
            found = ", ".join(f"{_TYPES[k]} in {each.examples}" for k, each in seen.kinds.items())
            raise _RefusedError(f"a feature has one type, and it is {found} examples")
        examples = sum(each.examples for each in self._splits)
        lines = list(draft_feature(name, seen, examples))
        if lines[-1] != "}":
            raise _RefusedError("its name is not UTF-8, and cannot be written in a schema")
        self.text.append(lines)
        yield "a new feature"

    def _domain(self, name: str) -> Iterator[str]:
        if name in self._retyped:
            return iter(())
        feature, need = self._features[name], self._need(name)
        found = self._values.widen(feature, need, self._path(name), self._domain_path(feature))
        if isinstance(found, str):
            raise _RefusedError(found)
        return iter(found)

    def _finite(self, name: str) -> Iterator[str]:
        if name in self._retyped:
            return
        feature, need = self._features[name], self._need(name)
        fields = ["disallow_nan"] * need.nan + ["disallow_inf"] * need.infinite
        self._values.allow(self._path(name), self._domain_path(feature), fields)
        for field in fields:
            yield f"{'NaN is' if field == 'disallow_nan' else 'infinite values are'} allowed"

    def _distinct(self, name: str) -> Iterator[str]:
        bounds = self._features[name].distinct
        counts = [each.distinct.get(name) for each in self._splits if each.examples]
        known = [count for count in counts if count is not None]
        if bounds is None or len(known) != len(counts):
            raise _RefusedError("it has too many different values to be counted")
        place: Path = (*self._path(name), "unique_constraints", 0)
        if bounds.min is not None and min(known) < bounds.min:
            self.text.set(place, "min", str(min(known)))
            yield f"at least {counted(min(known), 'different value')}"
        if bounds.max is not None and max(known) > bounds.max:
            self.text.set(place, "max", str(max(known)))
            yield f"at most {counted(max(known), 'different value')}"

    def _examples(self, name: str) -> Iterator[str]:
        del name
        examples, bounds = sum(each.examples for each in self._splits), self._schema.examples
        place: Path = ("dataset_constraints", 0)
        if bounds is not None and bounds.min is not None and examples < bounds.min:
            self.text.set(place, "min_examples_count", str(examples))
            yield f"at least {counted(examples, 'example')}"
        if bounds is not None and bounds.max is not None and examples > bounds.max:
            self.text.set(place, "max_examples_count", str(examples))
            yield f"at most {counted(examples, 'example')}"

    def _need(self, name: str) -> Need:
        return self._needs.features.get(name) or Need()

    def _path(self, name: str) -> Path:
        return ("feature", self._paths["feature", name])

    def _domain_path(self, feature: Feature) -> Path | None:
        """Of the domain that the feature refers to, None where it has its own or none."""
        for group in ("string_domain", "int_domain", "float_domain"):
            number = self._paths.get((group, feature.domain_name))
            if feature.domain_name and number is not None:
                return (group, number)
        return None


def _paths(schema: Schema) -> dict[tuple[str, str], int]:
    """Numbers of features and of the schema's own domains, by group and name."""
    message = schema_message(schema)
    groups = ("feature", "string_domain", "int_domain", "float_domain")
    return {
        (group, each.name): number
        for group in groups
        for number, each in enumerate(getattr(message, group))
    }

"""Drafting a schema from data: a first version for people to correct, never a judge of that data.

What the draft says is what was seen, put so that it would also fit more data of the same kind: a
fixed shape only where every example has the feature in the same length, a list of strings only
where few of them come again and again, bounds only for labels. The data it was drafted from pass
it, but for features of which two types were seen.
"""

from __future__ import annotations

from collections.abc import Iterator

from tfrecreg.example import Example
from tfrecreg.schema.draft import draft_feature
from tfrecreg.schema.seen import Seen
from tfrecreg.schema.wording import counted
from tfrecreg.text import safe

__all__ = ["SchemaSketch"]

_MAX_FEATURES = 10_000
"""Features that are kept: their names come from the data."""


class SchemaSketch:
    """What was seen of the examples of a dataset, and the draft that follows from it.

    Picklable and mergeable: make one a shard, then merge them. Its size is bounded.
    """

    def __init__(self) -> None:
        self.examples = 0
        """Seen so far."""
        self.others = 0
        """Records that were no examples."""
        self.empty = 0
        """Examples without a single feature; so many a message of another kind looks."""
        self._features: dict[str, Seen] = {}
        self._too_many = False

    def add(self, example: Example | None) -> None:
        """See one more example, or None for a record that is none."""
        if example is None:
            self.others += 1
            return
        self.examples += 1
        self.empty += not example
        for name, feature in example.items():
            seen = self._seen(name)
            if seen is not None:
                seen.add(feature)

    def merge(self, other: SchemaSketch) -> None:
        """Take in what was seen elsewhere."""
        self.examples += other.examples
        self.others += other.others
        self.empty += other.empty
        self._too_many |= other._too_many
        for name, theirs in other._features.items():
            seen = self._seen(name)
            if seen is not None:
                seen.merge(theirs)

    def render(self, dataset: str) -> str:
        """The draft, as text that :func:`tfrecreg.schema.parse_schema` takes.

        Args:
            dataset: its name, or what else to call the data in the first comment.
        """
        lines = list(self._head(dataset))
        for name in sorted(self._features):
            lines += ["", *draft_feature(name, self._features[name], self.examples)]
        return "\n".join(lines) + "\n"

    def _seen(self, name: str) -> Seen | None:
        seen = self._features.get(name)
        if seen is None:
            if len(self._features) >= _MAX_FEATURES:
                self._too_many = True
                return None
            seen = self._features[name] = Seen()
        return seen

    def _head(self, dataset: str) -> Iterator[str]:
        yield "# proto-file: tensorflow_metadata/proto/v0/schema.proto"
        yield "# proto-message: Schema"
        yield "#"
        yield f"# Drafted from {counted(self.examples, 'example')} of {safe(dataset) or 'no name'}."
        yield "# It says what was seen, not what ought to be: read it, correct it, keep it in git."
        if self.others:
            yield f"# Left out, as no tf.train.Example: {counted(self.others, 'record')}."
        if self.empty:
            yield f"# Without a single feature: {counted(self.empty, 'example')}."
        if self._too_many:
            yield f"# Left out: all features after the first {_MAX_FEATURES}."

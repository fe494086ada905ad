"""The base class of validators that check one record at a time.

One class and one method make a validator::

    class Blanks(RecordValidator):
        name = "blanks"
        codes = (TXT002,)
        features = ("text",)

        def look(self, example: Example) -> str | None:
            text = example["text"].values[0]
            return f"found {len(text)} bytes" if text != text.strip() else None

The base class counts the problems, keeps their locations, and merges and caches the parts. A
finding has the summary of its code as its message, and the result of :meth:`RecordValidator.look`
as the detail of its location.
"""

from __future__ import annotations

import pickle
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar, NamedTuple

from tfrecreg.core.check.scan.interface import Shard, Target, Validator, Visitor
from tfrecreg.core.check.scan.tally import JsonCodec, Tally, key_from
from tfrecreg.core.example.model import Example
from tfrecreg.core.records.batch import RecordBatch, StreamEnd
from tfrecreg.core.values.config import read_limits
from tfrecreg.core.values.findings import Code, Finding, Measure
from tfrecreg.core.values.text import listed, safe
from tfrecreg.core.values.typed_values import NoOptions


class RecordProblem(NamedTuple):
    """A problem of one record. Use it in :meth:`RecordValidator.look` if a text is not enough."""

    detail: str
    """What was expected and what was found, in this record."""
    code: Code | None = None
    """One of the validator's codes; None if it has only one."""
    feature: str = ""
    """The feature with the problem. If it is empty, the first of the validator's `features`
    applies, if there are any.
    """
    message: str = ""
    """The message, the same for all records with this problem. By default, the code's summary."""


class RecordCount(NamedTuple):
    """The number that a record adds to one of the validator's measures. A measure is a sum over all
    records.
    """

    name: str
    """`[a-z][a-z0-9_]*`; the measure is called ``<validator>.<name>``."""
    number: int = 1


Look = str | RecordProblem | RecordCount | Iterable[str | RecordProblem | RecordCount] | None


class RecordsPart(NamedTuple):
    """The result for one shard."""

    records: int
    """Number of records that were checked."""
    problems: Tally
    counts: dict[str, int]
    """Sums of :class:`RecordCount` by name."""


class RecordValidator(Validator):
    """Checks records one by one, independently of each other.

    A subclass defines `name`, `codes` and :meth:`look`. The object is pickled and sent to worker
    processes, so changes that :meth:`look` makes are lost.
    """

    features: tuple[str, ...] = ()
    """Required features. Records and datasets without them are not checked."""
    Options: ClassVar[type[Any] | None] = NoOptions
    """A frozen dataclass of options with defaults. A gate sets them in ``limits.<name>``."""

    def __init__(self) -> None:
        self.options: Any = (self.Options or NoOptions)()
        """The options: an object of :attr:`Options`."""

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if isinstance(cls.features, str):
            raise TypeError(f"`{cls.__name__}.features` is a text, expected a tuple of names")
        if "part_codec" not in vars(cls):
            cls.part_codec = JsonCodec(RecordsPart, getattr(cls, "codes", ()))

    @abstractmethod
    def look(self, example: Example) -> Look:
        """The problems of one record, and what it adds to measures. If the record has
        neither, return None or an empty text.

        Args:
            example: a record that has all of `features`.
        """

    def applies(self, target: Target) -> str | None:
        known = target.manifest.features if target.manifest is not None else self.features
        missing = [name for name in self.features if name not in known]
        return f"there is no feature {listed(missing, word='or')}" if missing else None

    def begin(self, target: Target, options: Mapping[str, Any]) -> Callable[[Shard], Visitor]:  # noqa: ARG002 - subclasses may need it
        """Read the options.

        Raises:
            ConfigError: an option is unknown, or a value has another type.
        """
        self.options = read_limits(self.Options or NoOptions, options, self.name)
        return partial(_RecordVisitor, self)

    def part_key(self, target: Target, options: Mapping[str, Any]) -> str | None:  # noqa: ARG002 - all is in `self`
        # Everything that `look` depends on is pickled with the object.
        return key_from(pickle.dumps(self).hex(), options=options)

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, RecordsPart]]
    ) -> Iterator[Finding | Measure]:
        records, problems = 0, Tally()
        counts: Counter[str] = Counter()
        for _, part in parts:
            records += part.records
            problems.merge(part.problems)
            counts.update(part.counts)
            _expect_few(counts)
        yield Measure(f"{self.name}.records", records, f"{records} records looked at")
        for name, number in sorted(counts.items()):
            yield Measure(f"{self.name}.{name}", number, f"{number} {name.replace('_', ' ')}")
        yield from problems.findings(target.dataset)


class _RecordVisitor(Visitor):
    def __init__(self, validator: RecordValidator, shard: Shard) -> None:
        self._validator = validator
        self._shard = shard
        self._records = 0
        self._problems = Tally()
        self._counts: Counter[str] = Counter()

    def batch(self, batch: RecordBatch) -> None:
        if not batch.whole:
            return
        features = self._validator.features
        for position, example in enumerate(batch.examples):
            if example is None or any(name not in example for name in features):
                continue
            self._records += 1
            for found in _answers(self._validator.look(example)):
                if isinstance(found, RecordCount):
                    self._counts[found.name] += found.number
                    _expect_few(self._counts)
                else:
                    self._add(found, batch, position)

    def close(self, end: StreamEnd) -> RecordsPart:  # noqa: ARG002 - the records say all
        return RecordsPart(self._records, self._problems, self._counts)

    def _add(self, problem: RecordProblem, batch: RecordBatch, position: int) -> None:
        validator = self._validator
        if problem.code is None and len(validator.codes) != 1:
            raise ValueError(f"`look` returned {problem!r} without a code of the validator")
        code = problem.code or validator.codes[0]
        feature = problem.feature or next(iter(validator.features), "")
        detail = problem.detail if problem.detail.isprintable() else safe(problem.detail)
        message = problem.message or code.summary
        self._problems.add_record(self._shard, batch, position, code, feature, message, detail)


_MAX_COUNTS = 100
"""Maximum number of measures, so that parts do not grow with the number of records."""


def _expect_few(counts: Mapping[str, int]) -> None:
    if len(counts) > _MAX_COUNTS:
        raise ValueError(f"`look` returned counts with more than {_MAX_COUNTS} names")


def _answers(look: Look) -> Iterator[RecordProblem | RecordCount]:
    """The result of `look`, as problems and counts."""
    if look:
        several = (look,) if isinstance(look, str | RecordProblem | RecordCount) else look
        for each in several:
            yield RecordProblem(each) if isinstance(each, str) else each

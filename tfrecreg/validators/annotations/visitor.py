"""Looks at the labels and objects of the records of one shard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from tfrecreg.codes import ANN004, ANN007
from tfrecreg.example import Example, Feature, Kind
from tfrecreg.findings import Code
from tfrecreg.records.batch import Fault, RecordBatch, StreamEnd
from tfrecreg.scan.interface import Shard
from tfrecreg.text import safe
from tfrecreg.validators.annotations.classes import ClassCounts, Names
from tfrecreg.validators.annotations.label_map import LabelMap
from tfrecreg.validators.annotations.names import OF_OBJECTS, Labels
from tfrecreg.validators.annotations.objects import look_at_objects
from tfrecreg.validators.annotations.part import AnnotationsPart
from tfrecreg.validators.places import place_of
from tfrecreg.validators.tables import Table, Tables, holds_bytes, holds_integers, tables_of

__all__ = ["AnnotationsVisitor"]


class AnnotationsVisitor:
    """Looks at the records of one shard.

    Args:
        labels: features of class numbers.
        maps: what their numbers are called, for those that somebody says it of.
        shard: the shard.
    """

    def __init__(
        self, labels: Sequence[Labels], maps: Mapping[str, LabelMap], shard: Shard
    ) -> None:
        self._labels = labels
        self._maps = maps
        self._texts = {
            feature: {
                number: name.encode("utf-8", "surrogateescape") for number, name in each.items()
            }
            for feature, each in maps.items()
        }
        self._shard = shard
        self._part = AnnotationsPart()

    def batch(self, batch: RecordBatch) -> None:
        if not batch.whole:
            return
        tables = tables_of(batch)
        for table in tables.tables:
            for position in self._look_at_table(tables, table):
                self._look_at(batch, position, tables.example(position))
        for position, example in tables.examples():
            self._look_at(batch, position, example)

    def _look_at_table(self, tables: Tables, table: Table) -> Sequence[int]:
        """Count the labels of records of one layout; those to be read are handed back."""
        positions = table.positions
        if not OF_OBJECTS.isdisjoint(table.columns):
            return list(positions.tolist())
        labels = [each for each in self._labels if holds_integers(table, each.label)]
        fine = np.ones(len(positions), np.bool_)
        for each in labels:
            fine &= self._are_fine(tables, table, each)
        for each in labels:
            counts = self._part.classes.setdefault(each.label, ClassCounts())
            values = table.columns[each.label][1].integers[fine]
            for label, times in zip(*np.unique(values, return_counts=True), strict=True):
                counts.add(int(label), int(times))
        if labels:
            self._part.records += int(fine.sum())
        return list(positions[~fine].tolist())

    def _are_fine(self, tables: Tables, table: Table, labels: Labels) -> npt.NDArray[np.bool_]:
        """Which records have a label that is known, and called what it should be."""
        values = table.columns[labels.label][1].integers
        text = labels.text
        known = self._texts.get(labels.label)
        if known is None:
            if text is None or not holds_bytes(table, text):
                return np.ones(len(values), np.bool_)
            names = self._part.names.setdefault(labels.label, Names())
            rows = zip(values.tolist(), tables.values(table, text), strict=True)
            for value, name in dict.fromkeys(rows):
                names.add(value, name)
            return np.ones(len(values), np.bool_)
        if text is None or not holds_bytes(table, text):
            return np.isin(values, np.array(list(known), np.int64))
        rows = zip(values.tolist(), tables.values(table, text), strict=True)
        return np.array([known.get(value) == name for value, name in rows], np.bool_)

    def _look_at(self, batch: RecordBatch, position: int, example: Example | None) -> None:
        """Look at one record."""
        if example is None:
            return
        objects = look_at_objects(example)
        if objects is not None:
            self._part.objects += objects.number
            for each in objects.problems:
                self._add(batch, position, each.code, each.feature, each.message, each.detail)
        labelled = [self._look(batch, position, example, each) for each in self._labels]
        if objects is not None or any(labelled):
            self._part.records += 1

    def fault(self, fault: Fault) -> None:
        """What is damaged is no record to look at."""

    def close(self, end: StreamEnd) -> AnnotationsPart:
        del end
        return self._part

    def _look(self, batch: RecordBatch, position: int, example: Example, labels: Labels) -> bool:
        """Look at the class numbers of a record, if it has any."""
        feature = example.get(labels.label)
        if feature is None or feature.kind is not Kind.INT64:
            return False
        values = feature.values
        counts = self._part.classes.get(labels.label)
        if counts is None:
            counts = self._part.classes[labels.label] = ClassCounts()
        for value in values:
            counts.add(value)
        known = self._maps.get(labels.label)
        if known is not None:
            for value in values:
                if value not in known:
                    message = f"`{safe(labels.label)}` should be in the label map"
                    detail = f"found {value}, which has no name"
                    self._add(batch, position, ANN004, labels.label, message, detail)
        text = example.get(labels.text) if labels.text is not None else None
        if text is not None and text.kind is Kind.BYTES and text.count == feature.count:
            self._name(batch, position, labels, values, text)
        return True

    def _name(
        self,
        batch: RecordBatch,
        position: int,
        labels: Labels,
        values: Sequence[int],
        text: Feature,
    ) -> None:
        """Hold the names that a record gives its classes against what they are called."""
        texts = self._texts.get(labels.label)
        if texts is None:
            names = self._part.names.setdefault(labels.label, Names())
            for value, name in zip(values, text.values, strict=True):
                names.add(value, name)
            return
        for value, name in zip(values, text.values, strict=True):
            expected = texts.get(value)
            if expected is not None and name != expected:
                name_of = labels.text or ""
                message = f"`{safe(name_of)}` should be what the label map calls its number"
                shown = [
                    safe(each[:256].decode("utf-8", "surrogateescape"), limit=60)
                    for each in (expected, name)
                ]
                detail = f"{value} is `{shown[0]}`, found `{shown[1]}`"
                self._add(batch, position, ANN007, name_of, message, detail)

    def _add(
        self,
        batch: RecordBatch,
        position: int,
        code: Code,
        feature: str,
        message: str,
        detail: str,
    ) -> None:
        place = place_of(self._shard, batch, position, feature=feature, detail=detail)
        self._part.tally.add(code, message, place, split=self._shard.split, feature=feature)

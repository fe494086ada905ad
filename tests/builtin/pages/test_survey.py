"""The survey of records, batch by batch."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from scan_support import shard

from tfrecreg.builtin.pages.survey import Pick, Survey, SurveyVisitor, add_counts
from tfrecreg.core.plugins.decoders import Decoders
from tfrecreg.core.records.batch import RecordBatch, StreamEnd
from tfrecreg.core.records.framing import frame
from tfrecreg.core.records.reader import scan
from tfrecreg.core.storage.local import LocalStorage


def test_records_are_chosen_by_a_hash_that_stays_as_it_is(tmp_path: Path) -> None:
    """The page of a release shows the same records whenever it is made."""
    storage = LocalStorage(tmp_path)
    payloads = [b"record %d" % number for number in range(100)]
    pieces, hashes = [], []
    for payload in payloads:
        head, foot = frame(payload)
        pieces += [head, payload, foot]
        hashes.append((int.from_bytes(foot, "little") * 0x9E3779B97F4A7C15 % 2**64) >> 1)
    (tmp_path / "x").write_bytes(b"".join(pieces))
    visitor = SurveyVisitor((), (), Decoders(), shard(storage, "x"))
    for batch in scan(storage, "x"):
        if isinstance(batch, RecordBatch):
            visitor.batch(batch)
    found = visitor.close(StreamEnd("none", 0, 0, 0, 0, None, None))
    expected = sorted((each, "x", number) for number, each in enumerate(hashes))
    assert found.samples[None] == expected[:48]


def test_what_is_counted_and_kept_has_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfrecreg.builtin.pages.survey._CLASSES", 3)
    monkeypatch.setattr("tfrecreg.builtin.pages.survey._COUNTED", 3)
    found = Survey()
    found.keep(None, (Pick(1, "x", 1),))  # a record of any class, which is none of the three
    for number in (4, 2, 9, 5, 2):
        found.keep(number, (Pick(number, "x", number),))
    assert {number: len(picks) for number, picks in found.samples.items()} == {
        None: 1,
        4: 1,
        2: 2,
        9: 1,
    }
    classes: Counter[int] = Counter()
    add_counts(classes, {4: 1, 2: 1, 9: 1, 5: 10})
    add_counts(classes, {2: 1, 6: 20})
    add_counts(found.sizes, {(side, side): 1 for side in range(5)})
    assert classes == {4: 1, 2: 2, 9: 1}
    assert found.sizes == {(0, 0): 1, (1, 1): 1, (2, 2): 1}

"""Records that other people's programs wrote."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pytest

from tfrecreg.core.example.decode import canonical, decode, decode_fully
from tfrecreg.core.example.model import encode
from tfrecreg.core.records.batch import RecordBatch
from tfrecreg.core.records.reader import scan
from tfrecreg.core.storage.local import LocalStorage

Judge = Callable[[bytes], "tuple[bytes, bool] | None"]

_MOST = 300  # records a file


def payloads(path: Path) -> Iterator[bytes]:
    """The first sound payloads of a TFRecord file, plain or gzip; none from anything else."""
    events = scan(LocalStorage(path.parent), path.name)
    batches = (each for each in events if isinstance(each, RecordBatch) and each.whole)
    yield from islice((each for batch in batches for each in batch.payloads()), _MOST)


@pytest.mark.slow
@pytest.mark.realdata
def test_real_records_are_read_as_protobuf_reads_them(realdata: Path, judge: Judge) -> None:
    seen: Counter[str] = Counter()
    for path in sorted((realdata / "tfrecord").rglob("*")):
        if not path.is_file() or path.stat().st_size > 20_000_000:
            continue
        for payload in payloads(path):
            expected = judge(payload)
            if expected is None:
                seen["no example"] += 1
                assert canonical(payload) is payload
                continue
            content, unknown = expected
            found = decode(payload)
            assert decode_fully(payload) == (found, unknown)
            assert encode(found) == content
            assert canonical(payload) == (payload if unknown else content)
            seen["unknown fields" if unknown else "example"] += 1
            seen["features"] += len(found)
    assert seen["example"] > 100, seen
    assert seen["features"] > seen["example"], seen

"""Records that other people's programs wrote."""

from __future__ import annotations

import gzip
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tfrecreg.core.example.decode import canonical, decode, decode_fully
from tfrecreg.core.example.model import encode

Judge = Callable[[bytes], "tuple[bytes, bool] | None"]

_MOST = 300  # records a file


def payloads(path: Path) -> Iterator[bytes]:
    """Payloads of a sound TFRecord file, plain or gzip; none from anything else."""
    raw = path.read_bytes()
    if raw[:2] == b"\x1f\x8b":
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError):
            return
    position = 0
    for _ in range(_MOST):
        if position + 16 > len(raw):
            return
        (length,) = struct.unpack_from("<Q", raw, position)
        if position + 16 + length > len(raw):
            return
        yield raw[position + 12 : position + 12 + length]
        position += 16 + length


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

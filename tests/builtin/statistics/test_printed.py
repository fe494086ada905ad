from __future__ import annotations

import math

from tfrecreg.builtin.statistics.collect import LeftOut, SplitStatistics
from tfrecreg.builtin.statistics.make import SplitStats, Stats
from tfrecreg.builtin.statistics.summary import FeatureSummary, Image, Numbers, Texts


def feature(name: str, kind, detail, histogram=(), present: int = 4, **more) -> FeatureSummary:
    values = {"values": present, "min_values": 1, "mean_values": 1.0, "max_values": 1, **more}
    return FeatureSummary(
        name=name,
        type=kind,
        present=present,
        missing=4 - present,
        detail=detail,
        histogram=histogram,
        **values,
    )


FEATURES = (
    feature("label", "int64", Numbers(2.5, 1.2, 1, 2, 4, 0, 0), (1, 0, 3)),
    feature("share", "float", Numbers(0.123456, math.nan, -math.inf, 0, 1e12, 0, 1), (4,)),
    feature("image", "image", Image(94_230, 0, 140_000), present=3),
    feature(
        "name\x1b[31m",
        "bytes",
        Texts(3, 5.5, 1, (("a\u202e", 2), ("x" * 40, 1), ("__BYTES_VALUE__", 1))),
        (2, 1, 1),
    ),
    feature("key", "bytes", Texts(4, 1, 0, (("b", 1), ("a", 1))), (1, 1, 1, 1)),
    feature("digit", "int64", Texts(1, 1, 0, (("7", 4),)), (4,)),
    feature("free", "bytes", Texts(0, 3, 0, ())),
    feature("gone", "bytes", None, present=0, min_values=0, max_values=0),
    feature("ragged", "int64", Numbers(1, 0, 1, 1, 1, 0, 0), (9,), min_values=0, max_values=2000),
)


def stats(*splits: SplitStats) -> Stats:
    return Stats("digits", splits)


def split(name: str = "train", features=FEATURES, *, cached: bool = False, **more) -> SplitStats:
    values = {"examples": 4, "left_out": LeftOut(), "sketched": (), "proto": None, **more}
    return SplitStats(SplitStatistics(split=name, **values), tuple(features), cached)


def test_a_table_a_split() -> None:
    assert str(stats(split())).splitlines() == [
        "train: 4 examples",
        "  feature       type   present      values     mean  std   min  median       max"
        "  histogram",
        "  label         int64    100 %           1      2.5  1.2     1       2         4  ▃ █",
        "  share         float    100 %           1   0.1235  nan  -inf       0     1e+12"
        "  █  25 % NaN",
        "  image         image     75 %           1  94.2 kB        0 B          140.0 kB",
        "  name\\x1b[31m  bytes    100 %           1      6 B                             "
        '  █▅▅  3 different: "a\\u202e" 50 %, "xxxxxxxxxxxxxxxxxxxxxxx…" 25 %, bytes 25 %',
        "  key           bytes    100 %           1      1 B                             "
        "  all 4 different",
        "  digit         int64    100 %           1                                       "
        ' █  1 different: "7" 100 %',
        "  free          bytes    100 %           1      3 B",
        "  gone          bytes      0 %",
        "  ragged        int64    100 %  0 to 2,000        1    0     1       1         1  █",
    ]

"""The `inflation` validator: how large the shards are, what makes them so, and what would help.

Totals are exact: the bytes of every feature. Causes are told from some records of each shard, the
same ones in every run, and what a cure would save is an estimate from these.

- `sampling`: which records are looked at closely
- `shape`: which sides a picture may have that a feature holds as pixels
- `numbers`: how narrow numbers could be stored
- `stored`: which numbers a feature holds, however they are stored
- `wrapped`: what is around numbers: `.npy`, BMP, gzip
- `png`: how large pixels are as a PNG
- `looks`: what was seen of one feature in such records
- `repeats`: how much of a feature are values that were there before
- `part`: what a shard hands back
- `visitor`: weighs one shard and looks at its records
- `causes`: from what was seen to causes and cures
- `validator`: measures, the limit, and the findings
"""

from __future__ import annotations

from tfrecreg.validators.inflation.validator import InflationValidator

__all__ = ["InflationValidator"]

"""The `duplicates` validator: the same picture or record again, in one split or in two.

- `options`: what may be asked of it
- `fingerprint`: what of a record is compared, as 16 bytes
- `visitor`: the fingerprints of one shard, spilled as sorted runs
- `runs`: sorted runs on disk, and how they are read again in order, in bounded memory
- `matches`: what is the same, from rows in order
- `contradictions`: one picture under several labels
- `part`: what a shard hands back, and how it is kept between checks
- `validator`: from matches to findings
"""

from __future__ import annotations

from tfrecreg.validators.duplicates.validator import DuplicatesValidator

__all__ = ["DuplicatesValidator"]

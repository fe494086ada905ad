"""Every code of the bundled validators, by family. The values layer: text, no behaviour.

One module a family, one constant a code: `crc`, `shd`, `sch`, `inf`, `src`, `dup`, `ann`, `img`,
`drf`, `reg`. `anomalies` has those of TFDV, ``SCH100`` and on, as a table, and `anomaly_groups`
what kinds of them have in common.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tfrecreg.codes import ann, crc, drf, dup, img, inf, reg, sch, shd, src
from tfrecreg.codes.anomalies import ANOMALIES
from tfrecreg.findings import Code

__all__ = ["CORE_CODES"]

CORE_CODES: Mapping[str, Code] = MappingProxyType(
    {
        name: getattr(family, name)
        for family in (crc, shd, sch, inf, src, dup, img, ann, reg, drf)
        for name in family.__all__
    }
    | ANOMALIES
)
"""Code by its name: ``CORE_CODES["CRC002"]``."""

"""Checking builds, releases and bare files.

- `find`: from one argument to what it names
- `targets`: from that to what is scanned
- `choose`: which validators look at it
- `effort`: how much work that is, and so where it is done
- `report`: what a check says, as data
- `baseline`: what a target is compared with
- `echoes`: what another finding says better
- `places`: the records behind what is found of whole splits
- `raw`: how large the raw data are, on both bases
- `keys`: the keys of records that findings name
- `hints`: the command that brings damaged bytes back
- `remember`: where checks remember what they found
- `verdict`: what a gate makes of the findings
- `basis`: what a report is about, and what was asked
- `saved`: reading a report again; `metrics`: what DVC shows of one
- `run`: checking one target; `several`: the operation, for all that are named
- `releases`: checking the releases of a registry without their bytes
"""

from __future__ import annotations

from tfrecreg.operations.check.find import find_target
from tfrecreg.operations.check.releases import check_registry
from tfrecreg.operations.check.remember import scan_cache
from tfrecreg.operations.check.report import Report
from tfrecreg.operations.check.run import CheckOptions, check_target
from tfrecreg.operations.check.several import check
from tfrecreg.operations.check.targets import build_target, files_target, reference_target

__all__ = [
    "CheckOptions",
    "Report",
    "build_target",
    "check",
    "check_registry",
    "check_target",
    "files_target",
    "find_target",
    "reference_target",
    "scan_cache",
]

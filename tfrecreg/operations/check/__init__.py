"""Checking builds, releases and bare files.

- `run`: the operation: find the targets that the user names, and check each
- `target`: check one target
- `options`: what to check, and when to fail
- `choose`: which validators look at a target
- `expected`: what a target should hold, as the user says it
- `findings`: from the findings of validators to those of a report
- `report`: the result, and reading it from a file; `metrics`: what DVC shows of a report
- `releases`: check the releases of a registry without their bytes; `loosened`: what a change
  accepts that was not accepted before
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfrecreg.lazy import lazy_exports

if TYPE_CHECKING:
    from tfrecreg.operations.check.options import CheckOptions
    from tfrecreg.operations.check.report import Report
    from tfrecreg.operations.check.run import check, scan_cache
    from tfrecreg.operations.check.target import check_target

__all__ = [
    "CheckOptions",
    "Report",
    "check",
    "check_target",
    "scan_cache",
]

# Who reads a report, or checks the releases of a registry, reads no records.
if not TYPE_CHECKING:  # which knows these names from above, and no others
    __getattr__ = lazy_exports(
        __name__,
        {
            ".options": ("CheckOptions",),
            ".report": ("Report",),
            ".run": ("check", "scan_cache"),
            ".target": ("check_target",),
        },
    )

"""The severities of the findings of this call, for the process that judges them again."""

from __future__ import annotations

from tfrecreg.findings import Severity
from tfrecreg.gating import FailOn

FOUND: set[tuple[FailOn, Severity]] = set()
"""Each with the lowest one that fails."""

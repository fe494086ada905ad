"""The kit's tests of a source."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from derived_support import STREET, Derived, pictures

from tfrecreg.testing import SourceTests


class TestDerived(SourceTests):
    source = "tfrecreg"
    options: ClassVar = {"inputs": ["street@1.0.0"], "classes": ["truck=", "dog=hound"]}

    def write_raw(self, folder: Path) -> None:
        made = Derived(folder)
        labels = {"image/class/label": STREET}
        made.parent("street", pictures("s", STREET, 8, 4), labels=labels)

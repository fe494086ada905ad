"""For tests and examples: the kit for tests of plugins, shards to check, raw data to build from.

The names keep their meaning until the next major version, like :mod:`tfrecreg.api`. The modules.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfrecreg.testing.data import build_examples, examples, write_digits, write_shard
    from tfrecreg.testing.kit import check_validator
    from tfrecreg.testing.source_tests import SourceTests
    from tfrecreg.testing.validator_tests import ValidatorTests

__all__ = [
    "SourceTests",
    "ValidatorTests",
    "build_examples",
    "check_validator",
    "examples",
    "write_digits",
    "write_shard",
]

_LATER = (
    ("tfrecreg.testing.kit", "check_validator"),
    ("tfrecreg.testing.data", "build_examples examples write_shard"),
    ("tfrecreg.testing.data", "write_digits"),
    ("tfrecreg.testing.source_tests", "SourceTests"),
    ("tfrecreg.testing.validator_tests", "ValidatorTests"),
)
_HOMES = {name: module for module, names in _LATER for name in names.split()}

if not TYPE_CHECKING:  # mypy takes the names from the imports above

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_HOMES[name]), name)

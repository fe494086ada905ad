"""Version numbers, in a module that imports no other module."""

from __future__ import annotations

__version__ = "0.1.0"

JSON_VERSION = 1
"""The `format_version` of every JSON document that the command line writes."""

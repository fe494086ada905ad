"""Versions, in a module that imports no others."""

from __future__ import annotations

__version__ = "0.1.0"

JSON_VERSION = 1
"""The `format_version` of every JSON document that the command line writes."""

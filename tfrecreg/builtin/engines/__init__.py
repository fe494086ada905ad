"""Engines over the workers of other libraries. Each imports its library when it connects."""

from __future__ import annotations

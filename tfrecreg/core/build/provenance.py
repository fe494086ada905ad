"""Provenance: user and time, which no digest covers."""

from __future__ import annotations

import datetime
import getpass


def now() -> str:
    """UTC, ISO 8601 to the second: ``2026-01-31T12:00:00Z``."""
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def user() -> str:
    """The user's name; empty for a user id that has none, as in containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""

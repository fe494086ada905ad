"""Engines over the workers of other libraries, built on :mod:`tfrecreg.api`. Each imports its
library when it connects.
"""

from __future__ import annotations

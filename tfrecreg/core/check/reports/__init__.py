"""Reports of checks, and their formats for other programs.

Text and JSON are the core's; every other format is a plugin.
"""

from __future__ import annotations

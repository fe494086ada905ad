"""Reports of checks, and their formats for other programs.

- `model`: the result of a check, as data
- `places`: where a finding was seen, as text
- `interface`: the base class of report formats, and its arguments

Text and JSON are the core's; every other format is a plugin.
"""

from __future__ import annotations

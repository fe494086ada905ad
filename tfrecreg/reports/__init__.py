"""Reports of checks, and what writes them for other programs.

- `model`: the result of a check, as data
- `places`: where a finding was seen, as text
- `interface`: what a report format is, and what it is given

Text and JSON are the core's; every other format is a plugin.
"""

from __future__ import annotations

"""Engines over the workers of other libraries, built on :mod:`tfrecreg.api`. Each imports its
library when it connects.

- `plugin`: announces them
- `dask`, `ray`: tasks of a cluster
- `beam`: tasks of pipelines
- `futures`: tasks of any executor of :mod:`concurrent.futures`
"""

from __future__ import annotations

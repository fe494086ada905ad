"""Engines run tasks. An engine is independent of scans and builds: it gets a function and tasks,
and returns results in order.

- `interface`: the engine protocol
- `local`: tasks on this machine, in this process or in worker processes
- `pool`: those worker processes; imported only for several jobs
"""

from __future__ import annotations

from tfrecreg.engines.interface import Engine
from tfrecreg.engines.local import LocalEngine, usable_cores

__all__ = ["Engine", "LocalEngine", "usable_cores"]

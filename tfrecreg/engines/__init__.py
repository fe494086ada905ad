"""Where tasks run. An engine knows nothing of scans or builds: a function, tasks, results in order.

- `interface`: what an engine is
- `local`: this machine, in this process or in worker processes
- `pool`: those worker processes, imported where there are several jobs
"""

from __future__ import annotations

from tfrecreg.engines.interface import Engine
from tfrecreg.engines.local import LocalEngine, usable_cores

__all__ = ["Engine", "LocalEngine", "usable_cores"]

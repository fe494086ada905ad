"""Engines run tasks. An engine is independent of scans and builds: it gets a function and tasks,
and returns results in order.

- `interface`: the engine protocol
- `local`: tasks on this machine, in this process or in worker processes
- `pool`: those worker processes; imported only for several jobs
- `outcome`: results and exceptions as bytes
- `remote`: the base class of engines over the workers of other libraries; `handshake`: what their
  workers check before a task
- `exchange`: files of tasks and outcomes, in a folder or a bucket, for workers that take no bytes
"""

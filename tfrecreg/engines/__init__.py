"""Engines run tasks. An engine is independent of scans and builds: it gets a function and tasks,
and returns results in order.

- `interface`: the engine protocol
- `local`: tasks on this machine, in this process or in worker processes
- `pool`: those worker processes; imported only for several jobs
- `outcome`: results and exceptions as bytes
- `choose`: engines by name
- `dask`, `beam`, `ray`, `futures`: tasks on the workers of another library. Each imports it when
  the engine connects
- `exchange`: files of tasks and outcomes, in a folder or a bucket
- `remote`: what these have in common; `handshake`: what their workers check before a task
"""

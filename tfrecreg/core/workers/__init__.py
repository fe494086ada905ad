"""Engines run tasks. An engine is independent of scans and builds: it gets a function and tasks,
and returns results in order.
"""

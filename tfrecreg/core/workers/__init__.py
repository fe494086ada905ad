"""Engines run tasks. An engine does not depend on scans or builds: it gets a function and tasks,
and returns the results in order of the tasks.
"""

"""The package whose modules the local plugins are.

A worker process that unpacks an object of a local plugin imports its module by name, and with it
this one, which has Python find the others.
"""

from __future__ import annotations

from tfrecreg.builtin.local_plugins.code import install_finder

__path__: list[str] = []
install_finder()

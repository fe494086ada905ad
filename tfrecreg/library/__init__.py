"""The library: handles with verbs, of which the public names of :mod:`tfrecreg` are made.

The classes are those of :mod:`tfrecreg.core.registry`, which read, with the operations as methods.
"""

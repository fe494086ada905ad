"""The library: handles with verbs, which give :mod:`tfrecreg` its public names.

The classes extend the readers of :mod:`tfrecreg.core.registry` with operations as methods.
"""

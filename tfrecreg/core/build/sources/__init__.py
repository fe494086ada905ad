"""Sources: each converts one kind of raw dataset to examples.

Sources are plugins: see :mod:`tfrecreg.core.plugins`.
"""

"""Sources: each turns one kind of raw dataset into examples.

All others are plugins: see :mod:`tfrecreg.core.plugins`.
"""

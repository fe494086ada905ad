"""Salvage of damaged shards: clean shards, the bytes that were cut out, and a report.

The mark that all this leaves in its folder is read by
:func:`tfrecreg.core.registry.manifest.read_mark`.
"""

"""Several sources as one, by proportions: a mixture.

A mixture is an endless sequence of places, of which so many in a row are an epoch. Which record is
at a place is computed from a few integers, exactly, on every machine alike.

`tfrecreg.mixture`, in `tfrecreg.builtin.look`, opens the members.
"""

"""Several sources as one, by proportions: a mixture.

A mixture is an endless sequence of places, of which so many in a row are an epoch. Which record is
at a place is computed from a few integers, exactly, on every machine alike.

- `rule`: how many places of an epoch each member has
- `mixing`: which record of which member is at a place
- `source`: :class:`Mixture`, the sequence of elements; `order`: the share of a host, and its state
- `report`: what of each member was handed out, by a certificate

`tfrecreg.mixture`, in `tfrecreg.builtin.look`, opens the members.
"""

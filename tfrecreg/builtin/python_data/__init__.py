"""Data that a program hands to a build: sequences, arrays and iterables, without a plugin.

A build reads a sequence twice. The first pass converts every element and keeps the digest of its
record; the second writes the records in the order of the plan, and compares each with that digest.
An iterable can be read only once, so its records are spooled to disk on the first pass.

- `elements`: the forms in which a split may be given
- `convert`: one element to its key, its example and its payload
- `parcel`: a sequence on its way to worker processes
- `spool`: the records of an iterable, on disk
- `survey`: the first pass
- `source`: the source whose items are the elements

Nothing here is a plugin: `build(data=…)` is the only user.
"""

"""Data that a program hands to a build: sequences, arrays and iterables, without a plugin.

A build reads a sequence twice. The first pass converts every element and keeps the digest of its
record; the second writes the records in the order of the plan, and compares each with that digest.
An iterable can be read only once, so its records are spooled to disk on the first pass.

Nothing here is a plugin: `build(data=…)` is the only user.
"""

"""Data that a program passes to a build: sequences, arrays and iterables, without a plugin.

A build reads a sequence twice. The first pass converts every element and keeps the digest of its
record. The second pass writes the records in planned order, and compares each with its digest.
An iterable can be read only once, so its records are spooled to disk on the first pass.

Nothing here is a plugin. Only `build(data=…)` calls this code.
"""

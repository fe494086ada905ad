"""Versions of a dataset: release, compare, tag, yank, audit."""

"""Compares two builds or releases, example by example."""

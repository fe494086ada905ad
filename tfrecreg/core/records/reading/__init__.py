"""Reads records by their number."""

"""Rebuilding lost or damaged files of a build or release: identical bytes, or nothing."""

"""Plugins in Python files of a registry, outside any distribution: `[plugins] local`."""

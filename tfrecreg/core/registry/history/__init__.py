"""Part of the package: history."""

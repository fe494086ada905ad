"""Part of the package: git."""

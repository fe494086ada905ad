"""Part of the package: core."""

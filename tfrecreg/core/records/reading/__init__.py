"""Part of the package: reading."""

"""Part of the package: orders."""

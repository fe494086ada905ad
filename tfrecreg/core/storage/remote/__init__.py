"""Part of the package: remote."""

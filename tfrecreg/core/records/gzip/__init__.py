"""Part of the package: gzip."""

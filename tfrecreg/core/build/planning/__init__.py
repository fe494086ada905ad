"""Part of the package: planning."""

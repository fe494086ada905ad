"""Part of the package: arrays."""

"""Part of the package: roles."""

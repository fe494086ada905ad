"""Part of the package: values."""

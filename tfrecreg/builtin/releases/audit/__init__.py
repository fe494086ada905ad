"""Audit: checking the releases of a registry, without their bytes."""

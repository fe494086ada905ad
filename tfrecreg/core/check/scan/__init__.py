"""One pass over the bytes for all validators."""

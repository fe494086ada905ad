"""The check: one pass over the bytes for all validators, the gate, the report."""

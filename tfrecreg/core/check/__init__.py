"""The check: it reads the bytes once for all validators, applies the gate and makes a report."""

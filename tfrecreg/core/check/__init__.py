"""The check: it passes over the bytes once for all validators, applies the gate and reports."""

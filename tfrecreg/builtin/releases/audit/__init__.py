"""Audit: checking the releases of a registry, without their bytes.

- `command`: its arguments
- `releases`: manifests, numbers, parents and history, of one branch or of two together
- `loosened`: findings that a change newly accepts
"""

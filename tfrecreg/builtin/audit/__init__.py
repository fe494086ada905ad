"""Audit: what is wrong with the releases of a registry, without their bytes.

- `command`: its arguments
- `releases`: manifests, numbers, parents and history, of one branch or of two together
- `loosened`: what a change accepts that was not accepted before
"""

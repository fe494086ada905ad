"""The validator `changes`: what may change since the version before.

- `plugin`: announces it
- `validator`: compares the examples, and holds their numbers against the limits of a gate
"""

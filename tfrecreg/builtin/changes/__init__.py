"""The validator `changes`: what a build or a release may change since the version before.

- `plugin`: its announcement
- `validator`: the limits of a gate, and the findings
"""

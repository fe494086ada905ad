"""Checking builds, releases and bare files.

- `run`: the operation: find the targets that the user names, and check each
- `target`: check one target
- `options`: what to check, and when to fail
- `choose`: which validators look at a target
- `expected`: what a target should hold, as the user says it
- `findings`: from the findings of validators to those of a report
- `basis`: what a report states of its target; `metrics`: what DVC shows of a report
"""

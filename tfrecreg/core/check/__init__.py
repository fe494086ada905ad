"""Checking builds, releases and bare files.

- `run`: the operation: find the targets that the user names, and check each
- `target`: check one target
- `options`: what to check, and when to fail
- `choose`: the validators for a target
- `expected`: the records that the user expects
- `raw_items`: the items of raw data that the records should hold
- `findings`: from the findings of validators to those of a report
- `basis`: facts about the target in a report; `metrics`: figures of a report for DVC
"""

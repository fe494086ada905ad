"""The printed form of results, for commands of the core and of rooms. Text from data is escaped.

- `catalog`: lists, manifests and histories; `built` and `released`: new builds and releases
- `records`: the records that `head` shows, with images in terminals that support them
- `schema_changes`: how two schemas differ
- `report_command`, `reports`: a command that writes a report, and its options and output
- `findings`: the report of a check
"""

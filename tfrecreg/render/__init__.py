"""What commands print of results, those of the core and those of rooms. Text from data is escaped.

- `catalog`: lists, manifests and histories; `built` and `released`: what was just made
- `records`: the records that `head` shows, with images in terminals that support them
- `schema_changes`: how two schemas differ
- `report_command`, `reports`: a command that writes a report, and its options and output
- `findings`: the report of a check
"""

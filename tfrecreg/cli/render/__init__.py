"""The output of the commands. Text from data is escaped.

- `diff`: the differences between two manifests
- `schemas`: comparisons of schemas, and proposed changes
- `preview`: what a build would do; `adopted`, `pipelines` and
  `transfers`: those of other commands
- `records`: the records that `head` shows, with images in terminals that support them
- `stats`: tables of statistics
"""

"""The output of the commands. Text from data is escaped.

- `diff`: the differences between two manifests
- `schemas`: comparisons of schemas, and proposed changes
- `preview`: the plan of a build; `adopted`, `pipelines` and
  `transfers`: those of other commands
- `stats`: tables of statistics
"""

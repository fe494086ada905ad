"""Comparing two builds or releases, example by example.

- `side`: one of the two: its manifest, indexes and records
- `match`: the partner of every example, from the indexes alone
- `row_memory`: memory for the rows of a comparison
- `compare`: which features and labels differ, from the records
- `reading`: passes over records, in this process or on an engine
- `images`: the same image under another key
- `verdict`: the version number that a difference asks for
- `classify`: the smallest legal step from a release to a build
- `result`: the result of `diff`, and its list of examples
- `run`: the operation `diff`
"""

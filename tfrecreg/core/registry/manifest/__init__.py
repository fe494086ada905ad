"""The manifest: the JSON that describes one build or release.

`model` has its fields, `file` reading, writing and digests, `totals` its sums without parsing all
of it, `adopted` the entries for shards that another tool wrote, `python_data` those for the data of
a program, `salvaged` the mark of a folder with shards that were salvaged from damaged ones.
"""

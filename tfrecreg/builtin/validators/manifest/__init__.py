"""The `manifest` validator: the set of files against the manifest, or against their names.

- `bare_files`: the names of bare files against their content
- `described_folders`: counts against the description that another tool left
- `training_hosts`: enough shards for every training host
- `validator`: the files of a build byte by byte, and all findings
"""

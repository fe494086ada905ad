"""A build in parts: planned once, made anywhere, and published by one command.

- `plan_model`: the contents of `plan.json`
- `plan_files`: writing the folder of a plan, and reading it again
- `plan_store`: plans in a store, and shards that go to one
- `lines`: the compressed lists in that folder
- `receipt_model`: a receipt as data
- `receipts`: the proof that a part leaves for each shard
- `open_source`: the source of a plan on this machine, with the versions and raw data of the plan
- `prepare_plan`: the operation that lists the items and writes the plan
- `one_part`: the operation that makes the shards of a part
- `proof`: the shards held against their receipts, and indexed, while the build is read back
- `remake`: shards made again, here, and compared
- `collect`: the operation that makes missing shards, proves all and publishes
- `provenance`: the receipts of a build, and those in a release
"""

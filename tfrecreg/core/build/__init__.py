"""Making a build: a pure function of raw data, options and schema.

- `settings`: the settings of a request merged over those of the dataset's file
- `request`: the defaults of a request
- `detection`: the source that fits raw data best, where none is named
- `data`: a build from the data of a program
- `changed_settings`: settings of this build that an earlier or the next build does not have
- `base`: the release that a build grows from, and the builds before it
- `growth`: the shards kept of the base, and an estimate of the push
- `item_store`: the items of a split, on disk where they are many
- `plan`: the order of the items and their shards, before any work starts
- `shard`: make one shard, or a segment of one, in a worker
- `make`: make all shards through an engine
- `assemble`: write the manifest, the ledger and the labels
- `sink`: where shards go, and which are finished there
- `state`: the state of the raw data
- `begin`, `conclude`: the start and the end of every build: the plan; the manifest and publishing
- `read_back`: the check that a new build has to pass
- `run`: the operation: plan, make, read back, publish
- `parts`: the same in parts, on several machines
"""

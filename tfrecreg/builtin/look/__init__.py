"""The operations: the library behind the command line. Nothing here prints or parses arguments.

- `init`, `builds`, `release`, `check`: the main workflow
- `gate`: judge a report, by `saved_report`; `policy`: gates and waivers that can never apply
- `pipeline`: the stages in which DVC runs all of these
- `diff`: compare two builds or releases, and the version number that the difference asks for
- `tag`: tag a release in git, and yank it
- `adopt`: a build of TFRecords that another tool wrote
- `catalog`, `head` with `format_payload` and `head_save`: look at datasets and records
- `stats`: the statistics of features
- `schemas`: infer, show, compare and accept schemas
- `digest`: the content digest of any TFRecords
- `describe`: a version for the log of an experiment; `snippets`: code that uses it
- `load` with `load_records` and `tf_dataset`, `data_source`, both with `split_target`; `mixture`,
  `export`: pass the data to training and other tools; `url_copy`: local copies for readers of paths
- `salvage`: undamaged records of damaged shards
- `remote`: push, pull and garbage collection
- `demo`: the whole workflow on generated data
- `overwrite_guard`: files that a new build may not replace; `provenance`: author and time;
  `leftovers`: temporary files in a stage
- `origin`: how a version was made, by its manifest
"""

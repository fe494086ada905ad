"""The library: handles with verbs, of which the public names of :mod:`tfrecreg` are made.

- `registry`: a registry, opened or made
- `dataset`: a dataset, which is built, adopted and released
- `versions`: a build or a release, which is checked, read, compared and sent
- `schemas`: the verbs of a schema, which datasets, builds and releases have
- `targets`: checks and pages of files, URLs, references and handles, which need no registry
- `records`: functions that read their records
- `questions`: questions in SQL
- `notebook`: handles and records in a notebook
- `progress`: the bar of a long verb, in a notebook and on a terminal
- `arguments`: arguments of verbs and functions in the form of operations

The classes are those of :mod:`tfrecreg.core.registry`, which read, with the operations as methods.
"""

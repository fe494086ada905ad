"""The library: handles with verbs, of which the public names of :mod:`tfrecreg` are made.

- `registry`: a registry, opened or made
- `dataset`: a dataset, which is built, adopted and released
- `versions`: a build or a release, which is checked, read, compared and sent
- `notebook`: what a notebook shows of them

The classes are those of :mod:`tfrecreg.registry`, which read, with the operations as methods.
"""

"""Sources: each turns one kind of raw dataset into examples.

- `interface`: the base class, items and records; the docstring has an example
- `guarded`: a source as the rest of the package calls it
- `splitter`: splits by shares: which split an item is dealt to
- `deal`: the options by which any source is dealt to other splits
- `strata`: splits that have each class in the same shares
- `file_splits`: splits by the names of files
- `numbered_files`: numbered sets of files that lack one
- `schema_text`: schemas that a source writes
- `parquet`: Parquet files, whose sizes are checked before they take memory
- `bundled`: the schema that a source's package carries
- `objects`: objects in images, the same in the records of all sources that annotate
- `python_data`: the data of a program as a source

All others are plugins: see :mod:`tfrecreg.core.plugins`.
"""

"""Sources: each turns one kind of raw dataset into examples.

- `interface`: the base class, items and records; the docstring has an example
- `guarded`: a source as the rest of the package calls it
- `splitter`: splits by shares: which split an item is dealt to
- `deal`: the options by which any source is dealt to other splits
- `bundled`: the schema that a source's package carries
- `python_data`: the data of a program as a source

All others are plugins: see :mod:`tfrecreg.plugins`.
"""

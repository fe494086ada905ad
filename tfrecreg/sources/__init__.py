"""Sources: what turns one kind of raw dataset into examples.

- `interface`: what a source, its items and its record are; the docstring is an example
- `guarded`: a source as the rest of the package calls it
- `bundled`: the schema that a source's package carries
- `python_data`: the data of a program as a source

All others are plugins: see :mod:`tfrecreg.plugins`.
"""

"""The bundled source `table`: the rows of CSV, TSV, JSON Lines and Parquet files.

It is a plugin like any other: it is announced through the entry-point group `tfrecreg` and imports
nothing of the project but `tfrecreg.api`.

- `plugin` announces the source; `recognition` finds it where no source is named
- `source`: :class:`~tfrecreg_table.source.TableSource`, which lists and makes examples
- `table_options`: the options, and the typed mapping of columns to features
- `table_files`: the tables of the raw folder, and their splits; `rows`: what they hold
- `listing`: the first pass, which finds rows, keys, splits and classes; `survey`: the types of
  columns that were given none, by all their values
- `columns`: features and schema; `values`: a value of a row as a feature
"""
